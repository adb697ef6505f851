// `int8-row`, `int8-g64`: signed bytes, f32 scales apart. The variant defines FMT_GROUP.

#define FMT_BLOCK 1
#define FMT_BYTES 1
#define FMT_SCALE_BYTES 4
#define FMT_TAIL 1
#define FMT_INTS 1
#define FMT_MIN 0

#include "words.glsl"
#include "scales.glsl"

vec2 fmt_scale(Row row, uint col) {
    return vec2(column_scale(row, col), 0.0);
}

uint fmt_ints4(Row row, uint col) {
    return get32(row.values, row.at + col);
}

uint fmt_ints_tail4(Row row, uint col, uint left) {
    return first_bytes(bytes_from(row.values, row.at + col, left), left);
}

#include "ints.glsl"
