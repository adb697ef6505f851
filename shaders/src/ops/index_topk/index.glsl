// What the kernels of `index_topk` share. A score is held as a key: an integer of the same order, above 0; 0 is a row without a score.

layout(constant_id = 1) const uint STRIDE = 1;
// Rows of a block; 1 where there are no blocks.
layout(constant_id = 2) const uint BLOCK = 1;

// The first rows of the state that a row of the step sees.
uint seen_at(uint pos) {
    return (pos + 1) / STRIDE;
}

uint blocks_of(uint seen) {
    return (seen + BLOCK - 1) / BLOCK;
}
