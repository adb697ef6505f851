// `iq2_xxs`: d, then 8 bytes a group: entries of 8 columns each, signs, a scale; `w = (d * (0.5 + S[g]) * 0.25) * G[q] * sign`.

#define FMT_BLOCK 256
#define FMT_BYTES 66
#define FMT_GROUP 32
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 0

#include "blocks.glsl"
#include "iq2_xxs/grid.glsl"
#include "iq.glsl"

vec2 fmt_scale(Row row, uint col) {
    uint block = block_at(row, col);
    uint code = get8(row.values, block + 9 + col % 256 / 32 * 8) >> 4;
    return vec2(even_half(row.values, block) * (0.5 + float(code)) * 0.25, 0.0);
}

uint fmt_ints4(Row row, uint col) {
    uint group = block_at(row, col) + 2 + col % 256 / 32 * 8;
    uint eight = col % 32 / 8;
    uint signs = even_signs(get32(row.values, group + 4) >> (7 * eight));
    return eights4(grid_entry(get8(row.values, group + eight)), signs, col);
}

#include "ints.glsl"
