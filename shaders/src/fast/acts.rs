//! Activations in int8.
#![allow(unsafe_code)]

use std::sync::{Mutex, PoisonError};

use bytemuck::cast_slice;

use super::{GROUP, Level, padded};
use crate::contract::{Team, share};
use crate::sums;

/// Columns of a unit: what a kernel for single tokens takes in a turn. A row has room for whole units.
pub const UNIT: usize = 256;

/// Groups of a unit.
const GROUPS: usize = UNIT / GROUP;

/// Rows of activations, quantized in groups of 32.
///
/// A number `x` becomes `q`, its product with 127 over the group's largest magnitude, rounded half to even. The group's scale is its
/// largest magnitude over 127, times `sum y q / sum q q` with the products `y` before rounding: the one that leaves the least squared
/// error. Both sums are as in [`crate::sums`]. A group of zeros has the scale 0. A group with a number that is not finite has the scale
/// NaN, so that the fault shows in the result as it does in exact mode.
#[derive(Debug, Default)]
pub struct Acts {
    rows: usize,
    cols: usize,
    /// Units of a row.
    units: usize,
    q: Vec<Bytes>,
    scales: Vec<Groups>,
    sums: Vec<Groups>,
    halves: Vec<Halves>,
}

/// The bytes of a unit. What a kernel reads at once lies in one line of the cache.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Bytes(pub(crate) [i8; UNIT]);

/// A number for each group of a unit.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct Groups(pub(crate) [f32; GROUPS]);

/// A number for each half of a group.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Halves(pub(crate) [f32; 2 * GROUPS]);

// SAFETY: arrays of plain numbers as long as a multiple of their alignment, so that there is no padding, and any bytes are numbers.
unsafe impl bytemuck::Zeroable for Bytes {}
// SAFETY: see above.
unsafe impl bytemuck::Pod for Bytes {}
// SAFETY: see above.
unsafe impl bytemuck::Zeroable for Groups {}
// SAFETY: see above.
unsafe impl bytemuck::Pod for Groups {}
// SAFETY: see above.
unsafe impl bytemuck::Zeroable for Halves {}
// SAFETY: see above.
unsafe impl bytemuck::Pod for Halves {}

/// One row of [`Acts`].
#[derive(Debug, Clone, Copy)]
pub struct ActRow<'a> {
    /// Bytes, padded with zeros to a multiple of 64.
    pub q: &'a [i8],
    /// A scale for every 32.
    pub scales: &'a [f32],
    /// The scale times the sum of the bytes, for every 32.
    pub sums: &'a [f32],
    /// The same for every 16.
    pub halves: &'a [f32],
}

/// One row of [`Acts`] in units: four slices of one length, padded with zeros.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActUnits<'a> {
    pub(crate) q: &'a [Bytes],
    pub(crate) scales: &'a [Groups],
    pub(crate) sums: &'a [Groups],
    pub(crate) halves: &'a [Halves],
}

impl Acts {
    /// Makes room for so many rows of `cols` numbers. What was there is gone.
    pub fn reset(&mut self, rows: usize, cols: usize) {
        (self.rows, self.cols, self.units) = (rows, cols, cols.div_ceil(UNIT));
        let units = rows * self.units;
        self.q.resize(units, Bytes([0; UNIT]));
        self.scales.resize(units, Groups([0.0; GROUPS]));
        self.sums.resize(units, Groups([0.0; GROUPS]));
        self.halves.resize(units, Halves([0.0; 2 * GROUPS]));
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Numbers of a row.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// A row.
    pub fn row(&self, row: usize) -> ActRow<'_> {
        let (row, groups) = (self.units(row), padded(self.cols) / GROUP);
        ActRow {
            q: &cast_slice(row.q)[..groups * GROUP],
            scales: &cast_slice(row.scales)[..groups],
            sums: &cast_slice(row.sums)[..groups],
            halves: &cast_slice(row.halves)[..2 * groups],
        }
    }

    /// A row in units.
    pub(crate) fn units(&self, row: usize) -> ActUnits<'_> {
        let units = row * self.units..(row + 1) * self.units;
        ActUnits {
            q: &self.q[units.clone()],
            scales: &self.scales[units.clone()],
            sums: &self.sums[units.clone()],
            halves: &self.halves[units],
        }
    }

    /// Quantizes a row of numbers into row `row`.
    ///
    /// # Panics
    /// When the row does not exist, or `x` is not as long as a row.
    pub fn set(&mut self, row: usize, x: &[f32]) {
        assert!(row < self.rows && x.len() == self.cols, "row {row} of {}, {} numbers of {}", self.rows, x.len(), self.cols);
        let units = row * self.units..(row + 1) * self.units;
        let (scales, sums) = (&mut self.scales[units.clone()], &mut self.sums[units.clone()]);
        quantize_row(x, &mut self.q[units.clone()], scales, sums, &mut self.halves[units]);
    }

    /// Quantizes all rows, on all threads of a team.
    ///
    /// # Panics
    /// When a row is not as long as it should be.
    pub fn set_all<'x>(&mut self, team: &dyn Team, row: &(dyn Fn(usize) -> &'x [f32] + Sync)) {
        let (units, cols) = (self.units, self.cols);
        let each = self.rows.div_ceil(4 * team.threads()).max(4);
        let piece = (each * units).max(1);
        let (q, scales) = (self.q.chunks_mut(piece), self.scales.chunks_mut(piece));
        let (sums, halves) = (self.sums.chunks_mut(piece), self.halves.chunks_mut(piece));
        let pieces: Vec<_> = q.zip(scales).zip(sums.zip(halves)).map(|piece| Mutex::new(Some(piece))).collect();
        share(team, pieces.len(), &|index, _| {
            let Some(((q, scales), (sums, halves))) = pieces[index].lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
            let (q, scales) = (q.chunks_exact_mut(units), scales.chunks_exact_mut(units));
            let (sums, halves) = (sums.chunks_exact_mut(units), halves.chunks_exact_mut(units));
            for (at, ((q, scales), (sums, halves))) in q.zip(scales).zip(sums.zip(halves)).enumerate() {
                let x = row(index * each + at);
                assert_eq!(x.len(), cols, "numbers of a row");
                quantize_row(x, q, scales, sums, halves);
            }
        });
    }
}

/// Quantizes a row, with the best instructions: the same bits on every machine.
fn quantize_row(x: &[f32], q: &mut [Bytes], scales: &mut [Groups], sums: &mut [Groups], halves: &mut [Halves]) {
    match Level::best() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is here.
        Level::Avx2 | Level::Avx512 => unsafe { quantize_row_avx2(x, q, scales, sums, halves) },
        _ => quantize_units(x, q, scales, sums, halves),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn quantize_row_avx2(x: &[f32], q: &mut [Bytes], scales: &mut [Groups], sums: &mut [Groups], halves: &mut [Halves]) {
    quantize_units(x, q, scales, sums, halves);
}

#[inline(always)]
fn quantize_units(x: &[f32], q: &mut [Bytes], scales: &mut [Groups], sums: &mut [Groups], halves: &mut [Halves]) {
    let (whole, rest) = x.as_chunks::<UNIT>();
    let mut last = [0.0; UNIT];
    last[..rest.len()].copy_from_slice(rest);
    let units = q.iter_mut().zip(scales).zip(sums.iter_mut().zip(halves));
    for (((q, scales), (sums, halves)), x) in units.zip(whole.iter().chain(std::iter::once(&last))) {
        for (group, (x, q)) in x.as_chunks::<GROUP>().0.iter().zip(q.0.as_chunks_mut::<GROUP>().0).enumerate() {
            let scale = quantize(x, q);
            let half = |start: usize| q[start..][..GROUP / 2].iter().map(|q| i32::from(*q)).sum::<i32>();
            let (low, high) = (half(0), half(GROUP / 2));
            (scales.0[group], sums.0[group]) = (scale, scale * (low + high) as f32);
            (halves.0[2 * group], halves.0[2 * group + 1]) = (scale * low as f32, scale * high as f32);
        }
    }
}

/// Quantizes a group and gives its scale.
#[inline(always)]
fn quantize(x: &[f32; GROUP], q: &mut [i8; GROUP]) -> f32 {
    // Magnitudes are ordered as their bits, infinities and NaNs above all numbers.
    let largest = f32::from_bits(x.iter().fold(0, |largest, x| largest.max(x.to_bits() & 0x7fff_ffff)));
    let inverse = 127.0 / largest;
    // Where the largest magnitude is so small that its inverse is infinite, the numbers are zeros to any sum.
    if !largest.is_finite() || !inverse.is_finite() {
        q.fill(0);
        return if largest.is_finite() { 0.0 } else { f32::NAN };
    }
    let (mut scaled, mut whole) = ([0.0; GROUP], [0.0; GROUP]);
    for (((scaled, whole), q), x) in scaled.iter_mut().zip(&mut whole).zip(q).zip(x) {
        *scaled = x * inverse;
        // A number between -2^22 and 2^22 plus 1.5 * 2^23 is rounded half to even by the addition, and the low bits of the sum are it.
        let rounded = *scaled + 12_582_912.0;
        (*whole, *q) = (rounded - 12_582_912.0, rounded.to_bits() as i8);
    }
    // The largest number gives 127, so the divisor is not 0.
    largest / 127.0 * (sums::lanes_dot(&scaled, &whole) / sums::lanes_dot(&whole, &whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::gemv::tests::{Random, same};

    /// The definition, number by number.
    fn check(x: &[f32], row: ActRow<'_>) {
        for (group, x) in x.chunks(GROUP).enumerate() {
            let largest = x.iter().fold(0f32, |largest, x| largest.max(x.abs()));
            let (finite, inverse) = (x.iter().all(|x| x.is_finite()), 127.0 / largest);
            let usual = finite && inverse.is_finite();
            let q: Vec<i32> = x.iter().map(|x| if usual { (x * inverse).round_ties_even() as i32 } else { 0 }).collect();
            let scaled: Vec<f32> = x.iter().map(|x| x * inverse).collect();
            let whole: Vec<f32> = q.iter().map(|q| *q as f32).collect();
            let fitted = || largest / 127.0 * (sums::dot(&scaled, &whole) / sums::dot(&whole, &whole));
            let scale = if !finite {
                f32::NAN
            } else if usual {
                fitted()
            } else {
                0.0
            };
            assert!(same(row.scales[group], scale), "{} is not {scale}", row.scales[group]);
            assert!(q.iter().zip(&row.q[group * GROUP..]).all(|(want, got)| *want == i32::from(*got)), "{x:?}");
            let sum = |q: &[i32]| scale * q.iter().sum::<i32>() as f32;
            assert!(same(row.sums[group], sum(&q)), "{group}");
            let (low, high) = q.split_at(q.len().min(GROUP / 2));
            assert!(same(row.halves[2 * group], sum(low)) && same(row.halves[2 * group + 1], sum(high)), "{group}");
        }
    }

    #[test]
    fn rows_are_quantized_by_the_definition() {
        let mut random = Random(9);
        let mut acts = Acts::default();
        for cols in [1, 16, 31, 64, 100, 256, 300, 1000] {
            acts.reset(2, cols);
            for exponent in -150..=127 {
                let mut x: Vec<f32> = (0..cols).map(|_| (f64::from(random.number()) * 2f64.powi(exponent)) as f32).collect();
                if exponent % 50 == 0 {
                    x[cols / 2] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0][exponent.unsigned_abs() as usize % 4];
                }
                acts.set(1, &x);
                check(&x, acts.row(1));
                let row = acts.row(1);
                assert!(row.q.len() == padded(cols) && row.q[cols..].iter().all(|q| *q == 0), "padding");
            }
        }
    }

    /// By hand: halves are rounded to even, and zeros have the scale 0.
    #[test]
    fn rows_by_hand() {
        let mut acts = Acts::default();
        acts.reset(1, 64);
        let mut x = [0.0; 64];
        (x[0], x[1], x[2], x[3], x[20]) = (127.0, 0.5, 1.5, -2.5, -1.0);
        acts.set(0, &x);
        let row = acts.row(0);
        assert_eq!((&row.q[..4], row.q[20]), (&[127, 0, 2, -2][..], -1));
        assert_eq!((row.scales, row.sums, row.halves), (&[1.0, 0.0][..], &[126.0, 0.0][..], &[127.0, -1.0, 0.0, 0.0][..]));
    }
}
