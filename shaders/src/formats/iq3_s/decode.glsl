// `iq3_s`: d, entries of 4 columns each, their ninth bits, signs, scales of 8 groups; `w = (d * (1 + 2 * S[g])) * G[q] * sign`.

#define FMT_BLOCK 256
#define FMT_BYTES 110
#define FMT_GROUP 32
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 0

#include "blocks.glsl"
#include "iq3_s/grid.glsl"
#include "iq.glsl"

vec2 fmt_scale(Row row, uint col) {
    uint block = block_at(row, col);
    uint code = get8(row.values, block + 106 + col % 256 / 64) >> (col / 32 % 2 * 4) & 15;
    return vec2(even_half(row.values, block) * float(1 + 2 * code), 0.0);
}

// The numbers 1, 3 .. 15 of the codes.
uint fmt_ints4(Row row, uint col) {
    uint block = block_at(row, col);
    uint four = col % 256 / 4;
    uint high = get8(row.values, block + 66 + four / 8) >> (four % 8) & 1;
    uint codes = spread4(grid_entry(get8(row.values, block + 2 + four) | high << 8));
    uint signs = get8(row.values, block + 74 + four / 2) >> (four % 2 * 4) & 15;
    return negative4(0x01010101u + codes * 2, spread1(signs));
}

#include "ints.glsl"
