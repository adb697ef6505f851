// `q2_0`: d, then pairs of bits of 64 columns; `w = d * (q - 1)`.

#define FMT_BLOCK 64
#define FMT_BYTES 18
#define FMT_GROUP 64
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 0

#include "blocks.glsl"

vec2 fmt_scale(Row row, uint col) {
    return vec2(even_half(row.values, block_at(row, col)), 0.0);
}

uint fmt_ints4(Row row, uint col) {
    return less4(spread2(get8(row.values, block_at(row, col) + 2 + col % 64 / 4)), 1);
}

#include "ints.glsl"
