// What the ternary IQ formats share: eight times `number + shift`, which is whole, for -1, 0, 1 and a shift of an eighth.

// Four numbers of an entry of eight; the shift is minus where `down` is 1.
uint ternary4(uint entry, uint down, uint col) {
    return less4(half_entry4(entry, col) * 8, 7 + 2 * down);
}
