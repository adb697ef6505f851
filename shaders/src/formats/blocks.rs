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
#[inline(always)]
pub(crate) fn word(bytes: &[u8], at: usize) -> u16 {
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

/// `N` bytes from byte `at`.
#[inline(always)]
pub(crate) fn at<const N: usize>(bytes: &[u8], at: usize) -> &[u8; N] {
    &bytes[at..].as_chunks().0[0]
}

/// A binary16 in f32, without a branch: exponents differ by 112, but for those of infinities and NaNs, which are the largest.
#[inline(always)]
pub(super) fn binary16(bits: u16) -> f32 {
    let (sign, rest) = (u32::from(bits & 0x8000) << 16, u32::from(bits & 0x7fff) << 13);
    let finite = (f32::from_bits(rest) * f32::from_bits((127 + 112) << 23)).to_bits();
    let special = rest | 0xff << 23;
    f32::from_bits(sign | if rest >= 31 << 23 { special } else { finite })
}

/// The scale at the beginning of a block, and its product with `zero`: the minimum of numbers whose codes are offset by it.
#[inline(always)]
pub(super) fn offset(block: &[u8], zero: f32) -> (f32, f32) {
    let scale = binary16(word(block, 0));
    (scale, zero * scale)
}

/// The lower nibbles of bytes, then the upper ones.
#[inline(always)]
pub(super) fn codes(bytes: &[u8], out: &mut [u8]) {
    let (low, high) = out.split_at_mut(bytes.len());
    for ((byte, low), high) in bytes.iter().zip(low).zip(high) {
        (*low, *high) = (byte & 15, byte >> 4);
    }
}

/// The words that begin eight blocks of `STEP` bytes, little-endian.
#[inline(always)]
pub(crate) fn words_every<const STEP: usize>(bytes: &[u8]) -> [u64; 2] {
    let pair = |block: usize| u64::from(word(bytes, block * STEP)) | u64::from(word(bytes, (block + 1) * STEP)) << 16;
    [pair(0) | pair(2) << 32, pair(4) | pair(6) << 32]
}

/// Bit 4 of each of 32 codes, from bits 0 to 31 of `high`.
#[inline(always)]
pub(super) fn fifths(high: u32, codes: &mut [u8; 32]) {
    for (at, code) in codes.iter_mut().enumerate() {
        *code |= ((high >> at & 1) as u8) << 4;
    }
}

/// The bytes of the lower nibbles, then those of the upper ones.
#[inline(always)]
pub(super) fn looked_up(table: &[u8; 16], bytes: &[u8], out: &mut [u8]) {
    let (low, high) = out.split_at_mut(bytes.len());
    for ((byte, low), high) in bytes.iter().zip(low).zip(high) {
        (*low, *high) = (table[usize::from(byte & 15)], table[usize::from(byte >> 4)]);
    }
}
