//! What IQ formats share: numbers from grids, with signs and a scale.

/// Eight signs, a bit each, of a code of seven: the eighth makes the number of minus signs even.
pub(super) fn even_signs(code: u32) -> u8 {
    let code = (code & 127) as u8;
    code | ((code.count_ones() & 1) as u8) << 7
}

/// `(scale * number) * sign` for an entry of a grid of eight numbers.
pub(super) fn eight(entry: u16, signs: u8, scale: f32, out: &mut [f32]) {
    for (at, out) in out.iter_mut().take(8).enumerate() {
        let number = [8.0, 25.0, 43.0, 0.0][usize::from(entry >> (2 * at) & 3)];
        *out = scale * number * sign(signs, at);
    }
}

/// `(scale * number) * sign` for an entry of a grid of four numbers; the signs are the lower four.
pub(super) fn four(entry: u16, numbers: &[f32; 16], signs: u8, scale: f32, out: &mut [f32]) {
    for (at, out) in out.iter_mut().take(4).enumerate() {
        *out = scale * numbers[usize::from(entry >> (4 * at) & 15)] * sign(signs, at);
    }
}

fn sign(signs: u8, at: usize) -> f32 {
    if signs >> at & 1 == 0 { 1.0 } else { -1.0 }
}

/// `scale * (number + shift)` for an entry of the grid of eight of -1, 0 and 1.
pub(super) fn ternary(entry: u16, shift: f32, scale: f32, out: &mut [f32]) {
    for (at, out) in out.iter_mut().take(8).enumerate() {
        *out = scale * (f32::from(entry >> (2 * at) & 3) - 1.0 + shift);
    }
}

/// The shift of the ternary formats, minus where `bit` is set.
pub(super) fn shift(bit: u16) -> f32 {
    if bit == 0 { 0.125 } else { -0.125 }
}

/// A grid of eight numbers in bytes, made of its codes: code `c` is `numbers[c]`.
pub(super) const fn eights<const N: usize>(grid: &[u16; N], numbers: [u8; 4]) -> [u64; N] {
    let mut bytes = [0; N];
    let mut at = 0;
    while at < N * 8 {
        let code = grid[at / 8] >> (at % 8 * 2) & 3;
        bytes[at / 8] |= (numbers[code as usize] as u64) << (at % 8 * 8);
        at += 1;
    }
    bytes
}

/// The same of four numbers; codes above 7 do not occur.
pub(super) const fn fours<const N: usize>(grid: &[u16; N], numbers: [u8; 8]) -> [u32; N] {
    let mut bytes = [0; N];
    let mut at = 0;
    while at < N * 4 {
        let code = grid[at / 4] >> (at % 4 * 4) & 7;
        bytes[at / 4] |= (numbers[code as usize] as u32) << (at % 4 * 8);
        at += 1;
    }
    bytes
}

/// A byte of ones for each bit of the index.
pub(super) static BYTES: [u64; 256] = {
    let mut masks = [0; 256];
    let mut at = 0;
    while at < 256 * 8 {
        masks[at / 8] |= if (at / 8) >> (at % 8) & 1 == 1 { 0xff << (at % 8 * 8) } else { 0 };
        at += 1;
    }
    masks
};

/// Eight numbers of a grid with their signs, as bytes: `zero` is zero, and no number is more.
#[inline(always)]
pub(super) fn signed(numbers: u64, signs: u8, zero: u8) -> [u8; 8] {
    let (zeros, minus) = (u64::from(zero) * 0x0101_0101_0101_0101, BYTES[usize::from(signs)]);
    // No byte carries into the next: sums are at most twice `zero`, differences at least 0.
    ((zeros.wrapping_add(numbers) & !minus) | (zeros.wrapping_sub(numbers) & minus)).to_le_bytes()
}

/// `8 * (number + shift) + 9` for eight numbers of the ternary grid, in which they are eightfold and 8 is zero; the shift is an eighth,
/// minus where `bit` is set.
#[inline(always)]
pub(super) fn shifted(numbers: u64, bit: u16) -> [u8; 8] {
    numbers.wrapping_add(if bit == 0 { 0x0202_0202_0202_0202 } else { 0 }).to_le_bytes()
}
