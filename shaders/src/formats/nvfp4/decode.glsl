// `nvfp4`: four-bit floats in blocks of 64; four scales (E4M3 without sign), then 8 bytes for each group of 16.

#define FMT_BLOCK 64
#define FMT_BYTES 36
#define FMT_GROUP 16
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 0

#include "blocks.glsl"
#include "fp4.glsl"

// Half of the scale; 127 is zero, and 255 is not.
vec2 fmt_scale(Row row, uint col) {
    uint code = get8(row.values, block_at(row, col) + col % 64 / 16);
    uint bits = code & 127;
    float least = float(bits) * (1.0 / 1024.0);
    float scale = bits < 8 ? least : uintBitsToFloat((bits << 20) + (119 << 23));
    return vec2(code == 127 ? 0.0 : scale, 0.0);
}

uint fmt_ints4(Row row, uint col) {
    uint bytes = aligned32(row.values, block_at(row, col) + 4 + col % 64 / 16 * 8 + col % 8);
    return twice4(bytes >> (col / 8 % 2 * 4) & 0x0f0f0f0fu);
}

#include "ints.glsl"
