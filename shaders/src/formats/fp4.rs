//! Four-bit floats (E2M1) of ggml's blocks: numbers twice their value, and scales half of theirs. Minus zero is zero.

/// Twice the numbers of the codes.
pub(super) const TWICE: [f32; 16] = [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0];

/// The same and 12, for panels.
pub(super) const U: [u8; 16] = [12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0];

/// Half of `2^(code-127)`; exact, 255 is `2^127` and not a NaN.
pub(super) fn half_e8m0(code: u8) -> f32 {
    let code = u32::from(code);
    f32::from_bits(if code < 2 { 0x0020_0000 << code } else { (code - 1) << 23 })
}

/// Half of an E4M3 number of bias 7, its sign bit left out of account; 127 is zero, and 255 is not.
pub(super) fn half_ue4m3(code: u8) -> f32 {
    let (exponent, mantissa) = (code >> 3 & 15, f32::from(code & 7));
    match (code, exponent) {
        (127, _) => 0.0,
        (_, 0) => mantissa / 1024.0,
        _ => (1.0 + mantissa / 8.0) * f32::from_bits((u32::from(exponent) + 119) << 23),
    }
}
