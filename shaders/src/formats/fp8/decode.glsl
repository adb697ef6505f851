// `fp8-<block>-<scale>`: eight-bit floats (e4m3fn), scales apart. The variant defines FMT_GROUP and FMT_SCALE_BYTES.

#define FMT_BLOCK 1
#define FMT_BYTES 1
#define FMT_TAIL 1
#define FMT_INTS 0

#include "words.glsl"
#include "scales.glsl"

// The number of a code in the lowest 8 bits. A subnormal is made of its mantissa: as f32 bits to be scaled it were one of f32 as well,
// which a driver may take for 0.
float e4m3(uint code) {
    uint bits = code & 127;
    uint number = bits < 8 ? floatBitsToUint(float(bits) * (1.0 / 512.0)) : bits == 127 ? 0x7fc00000u : (bits << 20) + (120 << 23);
    return uintBitsToFloat(number | (code & 128) << 24);
}

vec4 fp8_numbers4(Row row, uint col, uint bytes) {
    return vec4(e4m3(bytes), e4m3(bytes >> 8), e4m3(bytes >> 16), e4m3(bytes >> 24)) * column_scale(row, col);
}

vec4 fmt_decode4(Row row, uint col) {
    return fp8_numbers4(row, col, get32(row.values, row.at + col));
}

vec4 fmt_tail4(Row row, uint col, uint left) {
    return first_numbers(fp8_numbers4(row, col, bytes_from(row.values, row.at + col, left)), left);
}
