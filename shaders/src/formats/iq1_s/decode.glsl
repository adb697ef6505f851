// `iq1_s`: d, entries of 8 columns each, then their upper bits, scale and shift, two bytes a group.
// `w = (d * (2 * S[g] + 1)) * (G[q] + t[g])`; as integers: eight times `G[q] + t`, and an eighth of the scale.

#define FMT_BLOCK 256
#define FMT_BYTES 50
#define FMT_GROUP 32
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 0

#include "blocks.glsl"
#include "iq1_grid.glsl"
#include "iq.glsl"
#include "iq1.glsl"

uint iq1_word(Row row, uint col) {
    return even16(row.values, block_at(row, col) + 34 + col % 256 / 32 * 2);
}

vec2 fmt_scale(Row row, uint col) {
    uint code = iq1_word(row, col) >> 12 & 7;
    return vec2(even_half(row.values, block_at(row, col)) * float(2 * code + 1) * 0.125, 0.0);
}

uint fmt_ints4(Row row, uint col) {
    uint word = iq1_word(row, col);
    uint eight = col % 256 / 8;
    uint entry = grid_entry(get8(row.values, block_at(row, col) + 2 + eight) | (word >> (eight % 4 * 3) & 7) << 8);
    return ternary4(entry, word >> 15, col);
}

#include "ints.glsl"
