// `mxfp4-ggml`: four-bit floats in blocks of 17 bytes, the first a power of two.

#define FMT_BLOCK 32
#define FMT_BYTES 17
#define FMT_GROUP 32
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 0

#include "blocks.glsl"
#include "fp4.glsl"

// 2^(code - 128), of which the least two are subnormals, which a driver may take for 0; no code is NaN.
vec2 fmt_scale(Row row, uint col) {
    uint code = get8(row.values, block_at(row, col));
    return vec2(uintBitsToFloat(code < 2 ? 0x00200000u << code : (code - 1) << 23), 0.0);
}

uint fmt_ints4(Row row, uint col) {
    return twice4(nibbles4(get32(row.values, block_at(row, col) + 1 + col % 16), col));
}

#include "ints.glsl"
