// `iq2_s`: d, entries and signs of 8 columns each, upper bits, scales of 16 groups; `w = (d * (0.5 + S[g]) * 0.25) * G[q] * sign`.

#define FMT_BLOCK 256
#define FMT_BYTES 82
#define FMT_GROUP 16
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 0

#include "blocks.glsl"
#include "iq2_s/grid.glsl"
#include "iq.glsl"

vec2 fmt_scale(Row row, uint col) {
    uint block = block_at(row, col);
    uint code = get8(row.values, block + 74 + col % 256 / 32) >> (col / 16 % 2 * 4) & 15;
    return vec2(even_half(row.values, block) * (0.5 + float(code)) * 0.25, 0.0);
}

uint fmt_ints4(Row row, uint col) {
    uint block = block_at(row, col);
    uint eight = col % 256 / 8;
    uint high = get8(row.values, block + 66 + eight / 4) >> (eight % 4 * 2) & 3;
    uint entry = grid_entry(get8(row.values, block + 2 + eight) | high << 8);
    return eights4(entry, get8(row.values, block + 34 + eight), col);
}

#include "ints.glsl"
