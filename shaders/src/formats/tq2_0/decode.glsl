// `tq2_0`: pairs of bits of 256 columns, then d; `w = d * (q - 1)`.

#define FMT_BLOCK 256
#define FMT_BYTES 66
#define FMT_GROUP 256
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 0

#include "blocks.glsl"
#include "kquant.glsl"

vec2 fmt_scale(Row row, uint col) {
    return vec2(even_half(row.values, block_at(row, col) + 64), 0.0);
}

uint fmt_ints4(Row row, uint col) {
    uint bytes = get32(row.values, block_at(row, col) + pairs_at(col % 256));
    return less4(pairs4(bytes, col), 1);
}

#include "ints.glsl"
