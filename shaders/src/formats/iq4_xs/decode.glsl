// `iq4_xs`: d, scales of 8 groups, then nibbles that choose a number, 16 bytes a group; `w = (d * (S[g] - 32)) * V[q]`.

#define FMT_BLOCK 256
#define FMT_BYTES 136
#define FMT_GROUP 32
#define FMT_SCALE_BYTES 0
#define FMT_TAIL 0
#define FMT_INTS 1
#define FMT_MIN 0

#include "blocks.glsl"
#include "iq4.glsl"

vec2 fmt_scale(Row row, uint col) {
    uint block = block_at(row, col);
    uint group = col % 256 / 32;
    uint head = aligned32(row.values, block);
    uint low = aligned32(row.values, block + 4) >> (group * 4) & 15;
    uint high = head >> (16 + group * 2) & 3;
    return vec2(half_of(head) * (float(low | high << 4) - 32.0), 0.0);
}

uint fmt_ints4(Row row, uint col) {
    return numbers4(nibbles4(aligned32(row.values, block_at(row, col) + 8 + col % 256 / 32 * 16 + col % 16), col));
}

#include "ints.glsl"
