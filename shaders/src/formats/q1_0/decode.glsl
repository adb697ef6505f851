// `q1_0`: d, then a bit for each of 128 columns; `w = d` where it is set, else `-d`.

#define FMT_BLOCK 128
#define FMT_BYTES 18
#define FMT_GROUP 128
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 0

#include "blocks.glsl"

vec2 fmt_scale(Row row, uint col) {
    return vec2(even_half(row.values, block_at(row, col)), 0.0);
}

uint fmt_ints4(Row row, uint col) {
    uint bits = get8(row.values, block_at(row, col) + 2 + col % 128 / 8) >> (col / 4 % 2 * 4) & 15;
    return less4(spread1(bits) << 1, 1);
}

#include "ints.glsl"
