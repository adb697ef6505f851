// Four-bit floats (E2M1), as twice their numbers, which are whole.

// Four codes, a byte each, as signed bytes. Minus zero becomes zero.
uint twice4(uint codes) {
    uint bytes = 0;
    for (uint at = 0; at < 32; at += 8) {
        // The numbers 0, 1, 2, 3, 4, 6, 8, 12 of the codes without sign, a nibble each.
        uint number = 0xc8643210u >> ((codes >> at & 7) * 4) & 15;
        bytes |= ((codes >> at & 8) == 0 ? number : -number & 0xffu) << at;
    }
    return bytes;
}
