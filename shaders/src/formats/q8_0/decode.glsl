// `q8_0`: d, then 32 signed bytes; `w = q * d`.

#define FMT_BLOCK 32
#define FMT_BYTES 34
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
    return get32(row.values, block_at(row, col) + 2 + col % 32);
}

#include "ints.glsl"
