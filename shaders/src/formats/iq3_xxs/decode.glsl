// `iq3_xxs`: d, entries of 4 columns each, then signs and a scale a group; `w = (d * (0.5 + S[g]) * 0.5) * G[q] * sign`.

#define FMT_BLOCK 256
#define FMT_BYTES 98
#define FMT_GROUP 32
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 0

#include "blocks.glsl"
#include "iq3_xxs/grid.glsl"
#include "iq.glsl"

vec2 fmt_scale(Row row, uint col) {
    uint block = block_at(row, col);
    uint code = get8(row.values, block + 69 + col % 256 / 32 * 4) >> 4;
    return vec2(even_half(row.values, block) * (0.5 + float(code)) * 0.5, 0.0);
}

// The numbers 4, 12, 20 .. 52 and 62 of the codes: the last is 2 more than its place.
uint fmt_ints4(Row row, uint col) {
    uint block = block_at(row, col);
    uint codes = spread4(grid_entry(get8(row.values, block + 2 + col % 256 / 4)));
    uint last = codes & codes >> 1 & codes >> 2 & 0x01010101u;
    uint signs = even_signs(get32(row.values, block + 66 + col % 256 / 32 * 4) >> (col % 32 / 8 * 7));
    return negative4(0x04040404u + codes * 8 + last * 2, spread1(signs >> (col / 4 % 2 * 4) & 15));
}

#include "ints.glsl"
