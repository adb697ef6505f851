// `bf16`: the upper half of a binary32.

#define FMT_BLOCK 1
#define FMT_BYTES 2
#define FMT_GROUP 0
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 1
#define FMT_INTS 0

#include "words.glsl"

vec2 bf16_pair(uint bits) {
    return uintBitsToFloat(uvec2(bits << 16, bits & 0xffff0000u));
}

vec4 fmt_decode4(Row row, uint col) {
    uint at = row.at + 2 * col;
    return vec4(bf16_pair(get32(row.values, at)), bf16_pair(get32(row.values, at + 4)));
}

vec4 fmt_tail4(Row row, uint col, uint left) {
    uint at = row.at + 2 * col;
    vec2 first = bf16_pair(bytes_from(row.values, at, min(left, 2) * 2));
    vec2 second = left > 2 ? bf16_pair(even16(row.values, at + 4)) : vec2(0.0);
    return first_numbers(vec4(first, second), left);
}
