// `q4_1`: d, m, then the nibbles of 32 columns; `w = d * q + m`, so that the minimum is `-m`.

#define FMT_BLOCK 32
#define FMT_BYTES 20
#define FMT_GROUP 32
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 1

#include "blocks.glsl"

vec2 fmt_scale(Row row, uint col) {
    vec2 scale = unpackHalf2x16(aligned32(row.values, block_at(row, col)));
    return vec2(scale.x, -scale.y);
}

uint fmt_ints4(Row row, uint col) {
    return nibbles4(aligned32(row.values, block_at(row, col) + 4 + col % 16), col);
}

#include "ints.glsl"
