// `int3-g64`: `v + 4` in two planes, of 16 bytes with the lower two bits of 64 columns and 8 with the third; f32 scales apart.

#define FMT_BLOCK 64
#define FMT_BYTES 24
#define FMT_GROUP 64
#define FMT_SCALE_BYTES 4
#define FMT_TAIL 1
#define FMT_INTS 1
#define FMT_MIN 0

#include "blocks.glsl"
#include "scales.glsl"

vec2 fmt_scale(Row row, uint col) {
    return vec2(column_scale(row, col), 0.0);
}

uint fmt_ints4(Row row, uint col) {
    uint block = block_at(row, col);
    uint low = get8(row.values, block + col % 64 / 4);
    uint high = get8(row.values, block + 16 + col % 64 / 8) >> (col / 4 % 2 * 4) & 15;
    return less4(spread2(low) | spread1(high) << 2, 4);
}

// A row is stored in whole groups.
uint fmt_ints_tail4(Row row, uint col, uint left) {
    return first_bytes(fmt_ints4(row, col), left);
}

#include "ints.glsl"
