// `int4-g64-planar`: `v + 8` by halves of a group of 64; byte `i` of 32 has columns `i`, in its lower half, and `32 + i`.

#define FMT_BLOCK 64
#define FMT_BYTES 32
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
    uint bytes = aligned32(row.values, block_at(row, col) + col % 32);
    return less4(bytes >> (col / 32 % 2 * 4) & 0x0f0f0f0fu, 8);
}

// A row is stored in whole groups.
uint fmt_ints_tail4(Row row, uint col, uint left) {
    return first_bytes(fmt_ints4(row, col), left);
}

#include "ints.glsl"
