// What IQ formats share: numbers from grids, with signs. The grid comes before, with its words in FMT_GRID.
//
// Drivers may keep a constant array in slow memory, or copy it for every invocation. A kernel that defines FMT_GRID_SHARED has it in
// shared memory: all invocations of its workgroup call fmt_grid_fill first, then barrier().

#ifdef FMT_GRID_SHARED
shared uint fmt_grid_shared[FMT_GRID];

void fmt_grid_fill(uint invocation, uint invocations) {
    for (uint at = invocation; at < FMT_GRID; at += invocations) {
        fmt_grid_shared[at] = fmt_grid[at];
    }
}
#define FMT_GRID_WORDS fmt_grid_shared
#else
#define FMT_GRID_WORDS fmt_grid
#endif

// An entry of the grid; a word has two.
uint grid_entry(uint index) {
    return FMT_GRID_WORDS[index / 2] >> (index % 2 * 16) & 0xffffu;
}

// Eight signs, a bit each, of a code of seven in the lowest bits: the eighth makes the number of minus signs even.
uint even_signs(uint code) {
    code &= 127;
    return code | (bitCount(code) & 1) << 7;
}

// Four codes of an entry of eight, those of the upper half for a `col` in the second half of eight columns.
uint half_entry4(uint entry, uint col) {
    return spread2(entry >> (col / 4 % 2 * 8) & 0xffu);
}

// The numbers 8, 25 and 43 of the codes, four bytes; signs are those of eight columns.
uint eights4(uint entry, uint signs, uint col) {
    uint codes = half_entry4(entry, col);
    uint numbers = 0x08080808u + codes * 17 + (codes >> 1 & 0x01010101u);
    return negative4(numbers, spread1(signs >> (col / 4 % 2 * 4) & 15));
}
