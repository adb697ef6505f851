//! What formats of blocks share: rows are whole blocks, a block is decoded alone, and a width that is not whole blocks has no size.

/// Bytes of a row, at `BYTES` for every `COLS` numbers.
pub(super) fn row_bytes<const COLS: usize, const BYTES: usize>(cols: usize) -> Option<usize> {
    if cols.is_multiple_of(COLS) { (cols / COLS).checked_mul(BYTES) } else { None }
}

/// Decodes the blocks of a row.
pub(super) fn decode<const COLS: usize, const BYTES: usize>(bytes: &[u8], out: &mut [f32], block: impl Fn(&[u8; BYTES], &mut [f32; COLS])) {
    let (blocks, out) = (bytes.as_chunks().0, out.as_chunks_mut().0);
    blocks.iter().zip(out).for_each(|(bytes, out)| block(bytes, out));
}

/// The binary16 at byte `at`, little-endian.
pub(super) fn half(bytes: &[u8], at: usize) -> f32 {
    half::f16::from_bits(word(bytes, at)).to_f32()
}

/// The two bytes at `at`, little-endian.
pub(super) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// The four bytes at `at`, little-endian.
pub(super) fn quad(bytes: &[u8], at: usize) -> u32 {
    u32::from(word(bytes, at)) | u32::from(word(bytes, at + 2)) << 16
}

/// Nibble `index` of bytes whose lower nibble is first.
pub(super) fn nibble(bytes: &[u8], index: usize) -> u8 {
    bytes[index / 2] >> (index % 2 * 4) & 15
}

/// A number for each nibble: the lower ones of all bytes, then the upper ones. `number` gets column and code.
pub(super) fn halves(bytes: &[u8], out: &mut [f32], number: impl Fn(usize, u8) -> f32) {
    let (low, high) = out.split_at_mut(bytes.len());
    for (at, ((byte, low), high)) in bytes.iter().zip(low).zip(high).enumerate() {
        *low = number(at, byte & 15);
        *high = number(bytes.len() + at, byte >> 4);
    }
}

/// A nibble with bit `at` of `high` above it.
pub(super) fn fifth(code: u8, high: u32, at: usize) -> u8 {
    code | ((high >> at & 1) as u8) << 4
}
