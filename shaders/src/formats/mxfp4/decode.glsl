// `mxfp4`: four-bit floats, a byte has two columns, the even one in its lower half; powers of two apart, one for every 32.
// As integers: twice the numbers, with half of the scale. Minus zero is only among the numbers.

#define FMT_BLOCK 32
#define FMT_BYTES 16
#define FMT_GROUP 32
#define FMT_SCALE_BYTES 1
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 0

#include "words.glsl"
#include "scales.glsl"
#include "fp4.glsl"

// Half of a scale: exact, but that of the least two codes is a subnormal, which a driver may take for 0.
vec2 fmt_scale(Row row, uint col) {
    uint code = get8(row.scales, row.scale_at + col / 32);
    float scale = code == 0 ? uintBitsToFloat(0x00200000u) : ue8m0(code == 255 ? code : code - 1);
    return vec2(scale, 0.0);
}

uint mxfp4_codes(Row row, uint col) {
    return spread4(even16(row.values, row.at + col / 2));
}

uint fmt_ints4(Row row, uint col) {
    return twice4(mxfp4_codes(row, col));
}

vec4 fmt_decode4(Row row, uint col) {
    uint codes = mxfp4_codes(row, col);
    uvec4 signs = uvec4(codes << 28, codes << 20, codes << 12, codes << 4) & 0x80000000u;
    uvec4 sizes = floatBitsToUint(signed4(twice4(codes & 0x07070707u)) * 0.5);
    return uintBitsToFloat(sizes | signs) * column_scale(row, col);
}
