//! Scales that stand in rows of their own: one number for every so many numbers of a row, the last group may be short.

use super::blocks;
use crate::fast::panel::Unit;

/// One group is the whole row.
pub(super) const ROW: usize = usize::MAX;

/// How a scale is stored.
pub(super) trait Scale {
    /// Bytes of a scale.
    const BYTES: usize;

    /// The scales of a row.
    fn numbers(bytes: &[u8]) -> impl Iterator<Item = f32>;
}

/// IEEE 754 binary32, little-endian.
pub(super) struct F32;

/// The upper half of a binary32, little-endian.
pub(super) struct Bf16;

/// A power of two: byte `s` is 2^(s-127), 255 is NaN (OCP MX's E8M0).
pub(super) struct Ue8m0;

impl Scale for F32 {
    const BYTES: usize = 4;

    fn numbers(bytes: &[u8]) -> impl Iterator<Item = f32> {
        bytes.as_chunks::<4>().0.iter().map(|scale| f32::from_le_bytes(*scale))
    }
}

impl Scale for Bf16 {
    const BYTES: usize = 2;

    fn numbers(bytes: &[u8]) -> impl Iterator<Item = f32> {
        bytes.as_chunks::<2>().0.iter().map(|scale| half::bf16::from_le_bytes(*scale).to_f32())
    }
}

impl Scale for Ue8m0 {
    const BYTES: usize = 1;

    fn numbers(bytes: &[u8]) -> impl Iterator<Item = f32> {
        bytes.iter().map(|scale| ue8m0(*scale))
    }
}

/// The number of an E8M0 code; the least, 2^-127, is a subnormal of f32.
pub(super) fn ue8m0(code: u8) -> f32 {
    match code {
        0 => f32::from_bits(1 << 22),
        255 => f32::NAN,
        _ => f32::from_bits(u32::from(code) << 23),
    }
}

/// Bytes of the scales of a row.
pub(super) fn bytes<S: Scale, const GROUP: usize>(cols: usize) -> Option<usize> {
    cols.div_ceil(GROUP).checked_mul(S::BYTES)
}

/// Multiplies each group of a row by its scale; one rounding a number.
pub(super) fn apply<S: Scale, const GROUP: usize>(scales: &[u8], row: &mut [f32]) {
    for (group, scale) in row.chunks_mut(GROUP).zip(S::numbers(scales)) {
        group.iter_mut().for_each(|number| *number *= scale);
    }
}

/// The scales of a panel's unit from f32 scales, one for 64 columns or for all, and their products with what offsets the codes.
#[inline(always)]
pub(super) fn groups<const S: usize>(scales: &[u8; S], zero: f32, out: &mut Unit<8>) {
    for group in 0..8 {
        let at = group / 2 * 4 % S;
        out.scales[group] = f32::from_le_bytes(*blocks::at(scales, at));
        out.mins[group] = zero * out.scales[group];
    }
}

/// Writes the f32 scales of a row for whole numbers up to `most` and gives `put` the row's whole numbers, one after the other.
///
/// A group's scale is its largest magnitude over `most`. A number is its quotient by the scale, rounded half to even, from `-most - 1` to
/// `most`. A group whose scale is 0 has zeros.
///
/// What was encoded so and decoded encodes to the same bytes where the scales are normal numbers. With `s` the rounded `absmax / most`,
/// `most * s` rounds to `absmax` itself where that has the coarser spacing, and else so close that its quotient rounds to `s`.
pub(super) fn quantize<const GROUP: usize>(row: &[f32], most: i8, scales: &mut [u8], mut put: impl FnMut(usize, i8)) {
    let (stored, _) = scales.as_chunks_mut::<4>();
    for (index, (group, stored)) in row.chunks(GROUP).zip(stored).enumerate() {
        let largest = group.iter().fold(0f32, |largest, number| largest.max(number.abs()));
        let scale = largest / f32::from(most);
        *stored = scale.to_le_bytes();
        for (at, number) in group.iter().enumerate() {
            let whole = if scale == 0.0 { 0.0 } else { (number / scale).round_ties_even() };
            put(index.saturating_mul(GROUP).saturating_add(at), whole.clamp(-f32::from(most) - 1.0, f32::from(most)) as i8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_are_exact() {
        for code in 0..255u8 {
            assert_eq!(f64::from(ue8m0(code)), f64::powi(2.0, i32::from(code) - 127));
        }
        assert!(ue8m0(255).is_nan());
    }

    #[test]
    fn the_last_group_may_be_short() {
        assert_eq!([0, 1, 64, 65, 128].map(bytes::<F32, 64>), [0, 4, 4, 8, 8].map(Some));
        assert_eq!([1, 64, 70_000].map(bytes::<Bf16, ROW>), [2; 3].map(Some));
        assert_eq!(bytes::<F32, 1>(usize::MAX), None);
        let mut row = [1.0, 1.0, 1.0];
        apply::<Ue8m0, 2>(&[128, 126], &mut row);
        assert_eq!(row, [2.0, 2.0, 0.5]);
    }
}
