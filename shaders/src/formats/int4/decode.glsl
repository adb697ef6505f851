// `int4-row`, `int4-g64` and those with `-tc`: a byte has two columns, the even one in its lower half; f32 scales apart.
// The variant defines FMT_GROUP, and FMT_ZERO: 8 where `v + 8` is stored, 0 for two's complement.

#define FMT_BLOCK 2
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

// Two's complement with its sign bit turned is `v + 8`.
uint int4_numbers(uint codes) {
    return less4(spread4(codes) ^ (FMT_ZERO == 8 ? 0u : 0x08080808u), 8);
}

uint fmt_ints4(Row row, uint col) {
    return int4_numbers(get16(row.values, row.at + col / 2));
}

uint fmt_ints_tail4(Row row, uint col, uint left) {
    return first_bytes(int4_numbers(bytes_from(row.values, row.at + col / 2, (left + 1) / 2) & 0xffffu), left);
}

#include "ints.glsl"
