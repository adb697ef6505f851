// The sixteen numbers of IQ4 formats, as iq4_nl has them.

// The numbers of four codes, a byte each, as signed bytes. Choosing needs no array, which drivers may keep in slow memory.
uint numbers4(uint codes) {
    uint bytes = 0;
    for (uint at = 0; at < 32; at += 8) {
        uint code = codes >> at & 15;
        uint four = code < 8 ? (code < 4 ? 0xbfad9881u : 0xf6eaddcfu) : (code < 12 ? 0x26190d01u : 0x71594535u);
        bytes |= (four >> (code % 4 * 8) & 0xffu) << at;
    }
    return bytes;
}
