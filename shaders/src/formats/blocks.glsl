// Rows of whole blocks.

#include "words.glsl"

// The first byte of the block of a column.
uint block_at(Row row, uint col) {
    return row.at + col / FMT_BLOCK * FMT_BYTES;
}

// Nibbles of 32 columns in 16 bytes, as four bytes: byte `i` has columns `i`, in its lower half, and `16 + i`.
// `bytes` is the word of column `col`, which is one of 16, of either half.
uint nibbles4(uint bytes, uint col) {
    return bytes >> (col / 16 % 2 * 4) & 0x0f0f0f0fu;
}
