// `tq1_0`: digits of base 3, five in a byte, of 256 columns, then d; `w = d * (q - 1)`.

#define FMT_BLOCK 256
#define FMT_BYTES 54
#define FMT_GROUP 256
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 0

#include "blocks.glsl"

vec2 fmt_scale(Row row, uint col) {
    return vec2(even_half(row.values, block_at(row, col) + 52), 0.0);
}

// The first byte of `col` to `col + 3`, columns of the block, and their digit: 160 columns in 32 bytes, 80 in 16, 16 in 4.
uvec2 tq1_place(uint col) {
    if (col < 160) {
        return uvec2(col % 32, col / 32);
    }
    col -= 160;
    return col < 80 ? uvec2(32 + col % 16, col / 16) : uvec2(48, (col - 80) / 4);
}

// `byte * power mod 256 * 3 / 256` of the bytes in the lower halves of both 16 bits, which have room for the products.
uint tq1_digits(uint bytes, uint power) {
    return ((bytes & 0x00ff00ffu) * power & 0x00ff00ffu) * 3 >> 8 & 0x00ff00ffu;
}

uint fmt_ints4(Row row, uint col) {
    uvec2 place = tq1_place(col % 256);
    // 1, 3, 9, 27 or 81.
    uint power = (place.y < 4 ? 0x1b090301u >> (place.y * 8) : 81) & 0xffu;
    uint bytes = get32(row.values, block_at(row, col) + place.x);
    return less4(tq1_digits(bytes, power) | tq1_digits(bytes >> 8, power) << 8, 1);
}

#include "ints.glsl"
