// `q5_0`: d, the fifth bits, then the nibbles of 32 columns; `w = d * (q - 16)`.

#define FMT_BLOCK 32
#define FMT_BYTES 22
#define FMT_GROUP 32
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 0

#include "blocks.glsl"

vec2 fmt_scale(Row row, uint col) {
    return vec2(even_half(row.values, block_at(row, col)), 0.0);
}

uint fmt_ints4(Row row, uint col) {
    uint block = block_at(row, col);
    uint high = get8(row.values, block + 2 + col % 32 / 8) >> (col / 4 % 2 * 4) & 15;
    return less4(nibbles4(get32(row.values, block + 6 + col % 16), col) | spread1(high) << 4, 16);
}

#include "ints.glsl"
