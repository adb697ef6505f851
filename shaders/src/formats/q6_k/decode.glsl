// `q6_k`: nibbles of 256 columns, 64 bytes for a half, the upper pairs, signed scales of 16 groups, d; `w = (d * S[g]) * (q - 32)`.

#define FMT_BLOCK 256
#define FMT_BYTES 210
#define FMT_GROUP 16
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 0

#include "blocks.glsl"
#include "kquant.glsl"

vec2 fmt_scale(Row row, uint col) {
    uint block = block_at(row, col);
    int code = bitfieldExtract(int(get8(row.values, block + 192 + col % 256 / 16)), 0, 8);
    return vec2(even_half(row.values, block + 208) * float(code), 0.0);
}

uint fmt_ints4(Row row, uint col) {
    uint block = block_at(row, col);
    uint low = get32(row.values, block + col % 256 / 128 * 64 + col % 64) >> (col / 64 % 2 * 4) & 0x0f0f0f0fu;
    uint high = pairs4(get32(row.values, block + 128 + pairs_at(col % 256)), col);
    return less4(low | high << 4, 32);
}

#include "ints.glsl"
