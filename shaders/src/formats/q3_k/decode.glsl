// `q3_k`: the third bits of 256 columns, the lower pairs, scales of 16 groups, d; `w = (d * (S[g] - 32)) * (q - 4)`.

#define FMT_BLOCK 256
#define FMT_BYTES 110
#define FMT_GROUP 16
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 0

#include "blocks.glsl"
#include "kquant.glsl"

vec2 fmt_scale(Row row, uint col) {
    uint block = block_at(row, col);
    uint group = col % 256 / 16;
    uint low = get8(row.values, block + 96 + group % 8) >> (group / 8 * 4) & 15;
    uint high = get8(row.values, block + 104 + group % 4) >> (group / 4 * 2) & 3;
    return vec2(even_half(row.values, block + 108) * (float(low | high << 4) - 32.0), 0.0);
}

uint fmt_ints4(Row row, uint col) {
    uint block = block_at(row, col);
    uint low = pairs4(get32(row.values, block + 32 + pairs_at(col % 256)), col);
    uint high = get32(row.values, block + col % 32) >> (col % 256 / 32) & 0x01010101u;
    return less4(low | high << 2, 4);
}

#include "ints.glsl"
