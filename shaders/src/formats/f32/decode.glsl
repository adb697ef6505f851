// `f32`: bytes as numbers; a row is aligned as the matrix is.

#define FMT_BLOCK 1
#define FMT_BYTES 4
#define FMT_GROUP 0
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 1
#define FMT_INTS 0

#include "words.glsl"

vec4 fmt_tail4(Row row, uint col, uint left) {
    uint first = row.at / 4 + col;
    vec4 numbers = vec4(0.0);
    for (uint at = 0; at < left; at++) {
        numbers[at] = uintBitsToFloat(word_of(row.values, first + at));
    }
    return numbers;
}

vec4 fmt_decode4(Row row, uint col) {
    uint first = row.at / 4 + col;
    uvec4 words = uvec4(
        word_of(row.values, first), word_of(row.values, first + 1), word_of(row.values, first + 2), word_of(row.values, first + 3)
    );
    return uintBitsToFloat(words);
}
