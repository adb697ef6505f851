// `q4_k`: d, dmin, scales and minima of 8 groups, then nibbles, 32 bytes for two groups.

#define FMT_BLOCK 256
#define FMT_BYTES 144
#define FMT_GROUP 32
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 1

#include "blocks.glsl"
#include "kquant.glsl"

vec2 fmt_scale(Row row, uint col) {
    uint block = block_at(row, col);
    return unpackHalf2x16(aligned32(row.values, block)) * scale_min(row.values, block + 4, col % 256 / 32);
}

uint fmt_ints4(Row row, uint col) {
    uint bytes = aligned32(row.values, block_at(row, col) + 16 + col % 256 / 64 * 32 + col % 32);
    return bytes >> (col / 32 % 2 * 4) & 0x0f0f0f0fu;
}

#include "ints.glsl"
