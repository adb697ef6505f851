// A number of each invocation, along x; a row of each workgroup, along y.

layout(constant_id = 1) const bool HALVES = false;
layout(constant_id = 2) const uint HEAD_WIDTH = 2;
layout(constant_id = 3) const uint START = 0;
layout(constant_id = 4) const uint PAIRS = 1;

// An entry of the table: the cosines of the pairs, then their sines.
PUSH(Operand x; Operand y; Address angles; uint width;)

void main() {
    uint col = gl_GlobalInvocationID.x;
    uint row = gl_WorkGroupID.y;
    if (row >= ROW_COUNT || col >= push.width) {
        return;
    }
    uint x = ROW_START(push.x, row) + col;
    precise float number = FLOATS(push.x).at[x];
    // Columns before the first one wrap around and are not less either.
    uint turned = col % HEAD_WIDTH - START;
    if (turned < 2 * PAIRS) {
        bool second = HALVES ? turned >= PAIRS : turned % 2 == 1;
        uint pair = HALVES ? turned % PAIRS : turned / 2;
        uint apart = HALVES ? PAIRS : 1;
        float other = FLOATS(push.x).at[second ? x - apart : x + apart];
        uint entry = row * 2 * PAIRS + pair;
        precise float along = number * FLOATS(push.angles).at[entry];
        precise float across = other * FLOATS(push.angles).at[entry + PAIRS];
        number = second ? along + across : along - across;
    }
    FLOATS(push.y).at[ROW_START(push.y, row) + col] = number;
}
