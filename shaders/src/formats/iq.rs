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
