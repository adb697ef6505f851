// Bytes out of 32-bit words: what every decoder reads with, and the row that it reads.
//
// Not every driver has loads of 8 and 16 bits, so that a byte comes out of its word. No function here reads a word of which it needs no
// byte: what a caller asks for decides how far past the end of a matrix is read, and that is at most the rest of its last word.

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Words { uint word[]; };

// A row of a matrix: its first byte, and the first byte of its row of scales (any number where the format has none).
// An offset counts from the reference, so that rows lie within 4 GiB of it; a kernel moves the reference for a larger matrix.
struct Row {
    Words values;
    uint at;
    Words scales;
    uint scale_at;
};

uint word_of(Words words, uint index) {
    return words.word[index];
}

// The four bytes at `at`, a multiple of 4.
uint aligned32(Words words, uint at) {
    return word_of(words, at >> 2);
}

// The 1 to 4 bytes from `at` on, in the lowest bits; above them is what the words hold.
// A shift by 32 is undefined, so that the upper word's is split in two.
uint bytes_from(Words words, uint at, uint count) {
    uint shift = (at & 3) * 8;
    uint low = word_of(words, at >> 2);
    uint high = word_of(words, (at + count - 1) >> 2);
    return low >> shift | high << (31 - shift) << 1;
}

uint get8(Words words, uint at) {
    return word_of(words, at >> 2) >> ((at & 3) * 8) & 0xffu;
}

uint get16(Words words, uint at) {
    return bytes_from(words, at, 2) & 0xffffu;
}

// The two bytes at `at`, which is even: they lie in one word.
uint even16(Words words, uint at) {
    return word_of(words, at >> 2) >> ((at & 2) * 8) & 0xffffu;
}

uint get32(Words words, uint at) {
    return bytes_from(words, at, 4);
}

// The binary16 number of the lower 16 bits; subnormal ones are exact in f32 too.
float half_of(uint bits) {
    return unpackHalf2x16(bits).x;
}

// The binary16 at `at`, which is even.
float even_half(Words words, uint at) {
    return half_of(even16(words, at));
}

// Four bytes as signed numbers.
vec4 signed4(uint bytes) {
    int word = int(bytes);
    return vec4(bitfieldExtract(word, 0, 8), bitfieldExtract(word, 8, 8), bitfieldExtract(word, 16, 8), bitfieldExtract(word, 24, 8));
}

// `number` less in each byte, as signed bytes; for bytes below 128 and a number up to 128, so that no byte borrows from the next.
uint less4(uint bytes, uint number) {
    return ((bytes | 0x80808080u) - number * 0x01010101u) ^ 0x80808080u;
}

// Negative where the byte of `ones` is 1, not 0; for bytes from 1 to 127, so that no byte carries into the next.
uint negative4(uint bytes, uint ones) {
    return (bytes ^ ones * 255) + ones;
}

// Four bits to the lowest bits of four bytes, the first to the lowest byte.
uint spread1(uint bits) {
    return bits * 0x00204081u & 0x01010101u;
}

// Four pairs of bits, likewise.
uint spread2(uint bits) {
    uint halves = (bits | bits << 12) & 0x000f000fu;
    return (halves | halves << 6) & 0x03030303u;
}

// Four nibbles, likewise.
uint spread4(uint bits) {
    uint halves = (bits | bits << 8) & 0x00ff00ffu;
    return (halves | halves << 4) & 0x0f0f0f0fu;
}

// The first `count` bytes, 1 to 4; the others are 0.
uint first_bytes(uint bytes, uint count) {
    return bytes & 0xffffffffu >> (32 - 8 * count);
}

// The first `count` numbers, 1 to 4; the others are 0, whatever they were.
vec4 first_numbers(vec4 numbers, uint count) {
    return vec4(numbers.x, count > 1 ? numbers.y : 0.0, count > 2 ? numbers.z : 0.0, count > 3 ? numbers.w : 0.0);
}
