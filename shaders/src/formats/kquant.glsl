// What K formats share: where codes and scales of a column stand in a block of 256. `col` is a column of the block.

// The first of the four bytes with the pairs of bits of `col` to `col + 3`, from the first byte of the pairs.
//
// The lowest bits of 32 bytes are 32 columns, the next bits the next 32; after 128 columns come the next 32 bytes.
uint pairs_at(uint col) {
    return col / 128 * 32 + col % 32;
}

// The pairs of bits of `col` to `col + 3` out of those four bytes, as four bytes.
uint pairs4(uint bytes, uint col) {
    return bytes >> (col / 32 % 4 * 2) & 0x03030303u;
}

// Scale and minimum of group `group` of 8, six bits each, from twelve bytes at `at`, a multiple of 4; the diagram is in kquant.rs.
vec2 scale_min(Words words, uint at, uint group) {
    uint shift = group % 4 * 8;
    uint scales = aligned32(words, at) >> shift;
    uint mins = aligned32(words, at + 4) >> shift;
    uint low = aligned32(words, at + 8) >> shift;
    return group < 4 ? vec2(scales & 63, mins & 63) : vec2(low & 15 | scales >> 2 & 0x30u, low >> 4 & 15 | mins >> 2 & 0x30u);
}
