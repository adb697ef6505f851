// `q2_k`: scales and minima of 16 groups, a byte each, pairs of bits of 256 columns, d, dmin.

#define FMT_BLOCK 256
#define FMT_BYTES 84
#define FMT_GROUP 16
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 1

#include "blocks.glsl"
#include "kquant.glsl"

vec2 fmt_scale(Row row, uint col) {
    uint block = block_at(row, col);
    uint codes = get8(row.values, block + col % 256 / 16);
    return unpackHalf2x16(aligned32(row.values, block + 80)) * vec2(codes & 15, codes >> 4);
}

uint fmt_ints4(Row row, uint col) {
    return pairs4(aligned32(row.values, block_at(row, col) + 16 + pairs_at(col % 256)), col);
}

#include "ints.glsl"
