// `iq2_xs`: d, two bytes with entry and signs of 8 columns each, scales of 16 groups; `w = (d * (0.5 + S[g]) * 0.25) * G[q] * sign`.

#define FMT_BLOCK 256
#define FMT_BYTES 74
#define FMT_GROUP 16
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 0

#include "blocks.glsl"
#include "iq2_xs/grid.glsl"
#include "iq.glsl"

vec2 fmt_scale(Row row, uint col) {
    uint block = block_at(row, col);
    uint code = get8(row.values, block + 66 + col % 256 / 32) >> (col / 16 % 2 * 4) & 15;
    return vec2(even_half(row.values, block) * (0.5 + float(code)) * 0.25, 0.0);
}

uint fmt_ints4(Row row, uint col) {
    uint code = even16(row.values, block_at(row, col) + 2 + col % 256 / 8 * 2);
    return eights4(grid_entry(code & 511), even_signs(code >> 9), col);
}

#include "ints.glsl"
