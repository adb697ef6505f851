// `f16`: two bytes a number.

#define FMT_BLOCK 1
#define FMT_BYTES 2
#define FMT_GROUP 0
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 1
#define FMT_INTS 0

#include "words.glsl"

vec4 fmt_decode4(Row row, uint col) {
    uint at = row.at + 2 * col;
    return vec4(unpackHalf2x16(get32(row.values, at)), unpackHalf2x16(get32(row.values, at + 4)));
}

vec4 fmt_tail4(Row row, uint col, uint left) {
    uint at = row.at + 2 * col;
    vec2 first = unpackHalf2x16(bytes_from(row.values, at, min(left, 2) * 2));
    return first_numbers(vec4(first, left > 2 ? even_half(row.values, at + 4) : 0.0, 0.0), left);
}
