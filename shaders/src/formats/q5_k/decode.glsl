// `q5_k`: d, dmin, scales and minima of 8 groups, the fifth bits, then nibbles, 32 bytes for two groups.

#define FMT_BLOCK 256
#define FMT_BYTES 176
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
    uint block = block_at(row, col);
    uint low = aligned32(row.values, block + 48 + col % 256 / 64 * 32 + col % 32) >> (col / 32 % 2 * 4) & 0x0f0f0f0fu;
    uint high = aligned32(row.values, block + 16 + col % 32) >> (col % 256 / 32) & 0x01010101u;
    return low | high << 4;
}

#include "ints.glsl"
