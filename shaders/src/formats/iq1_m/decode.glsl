// `iq1_m`: entries of 8 columns each, their upper bits and shifts, then scales of 16 groups and d in four words.
// `w = (d * (2 * S[g] + 1)) * (G[q] + t)`; as integers: eight times `G[q] + t`, and an eighth of the scale.

#define FMT_BLOCK 256
#define FMT_BYTES 56
#define FMT_GROUP 16
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 0

#include "blocks.glsl"
#include "iq1_grid.glsl"
#include "iq.glsl"
#include "iq1.glsl"

vec2 fmt_scale(Row row, uint col) {
    uint block = block_at(row, col);
    uint low = aligned32(row.values, block + 48);
    uint high = aligned32(row.values, block + 52);
    float d = half_of(low >> 12 & 15 | low >> 28 << 4 | (high >> 12 & 15) << 8 | high >> 28 << 12);
    uint group = col % 256 / 16;
    uint code = (group < 8 ? low : high) >> (group / 4 % 2 * 16 + group % 4 * 3) & 7;
    return vec2(d * float(2 * code + 1) * 0.125, 0.0);
}

uint fmt_ints4(Row row, uint col) {
    uint block = block_at(row, col);
    uint eight = col % 256 / 8;
    uint high = get8(row.values, block + 32 + eight / 2) >> (eight % 2 * 4) & 15;
    uint entry = grid_entry(get8(row.values, block + eight) | (high & 7) << 8);
    return ternary4(entry, high >> 3, col);
}

#include "ints.glsl"
