//! Products of f32 rows, one accumulator a number: the tiles of float matrices in prompts, and both products of attention.

#![allow(unsafe_code)]

use super::Level;
use super::gemm::{STRIP, Unit};
use super::gemm_words::Here;

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Rows of `x` that a kernel takes together.
pub(super) const ROWS: usize = 6;

/// Where a product's numbers are: for each `k` a unit of sixteen numbers, for each of some strips.
#[derive(Debug, Clone, Copy)]
pub(super) struct Units<'a> {
    pub units: &'a [Unit],
    /// From a `k` to the next.
    pub step: usize,
    /// From a strip to the next.
    pub apart: usize,
    pub strips: usize,
}

/// A kernel of a number of rows and strips, of which `product` has found that they are there.
#[cfg(target_arch = "x86_64")]
///
/// # Safety
/// The machine has the instructions that it is compiled for.
type Kernel = unsafe fn(Units<'_>, &[&[f32]], &mut [Unit], &[usize]);

/// For each row `r` and strip `s`: `y[y_at[r] + s] = fma(x[r][k], unit(k, s), y[y_at[r] + s])`, for one `k` after the other.
///
/// # Panics
/// When the rows of `x` differ in length, a unit or a sum is missing.
pub(super) fn product(here: Here, w: Units<'_>, x: &[&[f32]], y: &mut [Unit], y_at: &[usize]) {
    let Some(count) = x.first().map(|x| x.len()).filter(|count| *count > 0 && w.strips > 0) else { return };
    assert!(x.iter().all(|x| x.len() == count) && x.len() == y_at.len(), "rows of a product");
    assert!((count - 1) * w.step + (w.strips - 1) * w.apart < w.units.len(), "units of a product");
    assert!(y_at.iter().all(|at| *at + w.strips <= y.len()), "sums of a product");
    for (x, y_at) in x.chunks(ROWS).zip(y_at.chunks(ROWS)) {
        match here.level() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the machine has the level, and all units, numbers and sums were found to be there.
            Level::Avx512 => unsafe { avx512(w, x, y, y_at) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the machine has the level, and all units, numbers and sums were found to be there.
            Level::Avx2 => unsafe { avx2(w, x, y, y_at) },
            _ => portable(w, x, y, y_at),
        }
    }
}

fn portable(w: Units<'_>, x: &[&[f32]], y: &mut [Unit], y_at: &[usize]) {
    for (x, at) in x.iter().zip(y_at) {
        for (strip, y) in y[*at..][..w.strips].iter_mut().enumerate() {
            for (k, x) in x.iter().enumerate() {
                let unit = &w.units[k * w.step + strip * w.apart];
                y.0.iter_mut().zip(unit.0).for_each(|(y, w)| *y = x.mul_add(f32::from_bits(w), f32::from_bits(*y)).to_bits());
            }
        }
    }
}

/// Up to six rows by four strips: 24 sums leave eight registers.
///
/// # Safety
/// As [`product`] checks.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn avx512(w: Units<'_>, x: &[&[f32]], y: &mut [Unit], y_at: &[usize]) {
    for first in (0..w.strips).step_by(4) {
        let w = Units { units: &w.units[first * w.apart..], strips: (w.strips - first).min(4), ..w };
        let y = &mut y[first..];
        let of_strips: Kernel = match w.strips {
            1 => rows_avx512::<1>,
            2 => rows_avx512::<2>,
            3 => rows_avx512::<3>,
            _ => rows_avx512::<4>,
        };
        // SAFETY: the caller's promise, and the kernel is that of so many strips.
        unsafe { of_strips(w, x, y, y_at) };
    }
}

/// # Safety
/// As [`product`] checks, with `S` strips.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn rows_avx512<const S: usize>(w: Units<'_>, x: &[&[f32]], y: &mut [Unit], y_at: &[usize]) {
    let of_rows: Kernel = match x.len() {
        1 => tile_avx512::<1, S>,
        2 => tile_avx512::<2, S>,
        3 => tile_avx512::<3, S>,
        4 => tile_avx512::<4, S>,
        5 => tile_avx512::<5, S>,
        _ => tile_avx512::<6, S>,
    };
    // SAFETY: the caller's promise, and the kernel is that of so many rows.
    unsafe { of_rows(w, x, y, y_at) };
}

/// # Safety
/// As [`product`] checks, with `R` rows and `S` strips.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn tile_avx512<const R: usize, const S: usize>(w: Units<'_>, x: &[&[f32]], y: &mut [Unit], y_at: &[usize]) {
    let mut sums = [[_mm512_setzero_ps(); S]; R];
    let mut from = [std::ptr::null::<f32>(); R];
    for r in 0..R {
        from[r] = x[r].as_ptr();
        for (s, sum) in sums[r].iter_mut().enumerate() {
            // SAFETY: a unit is sixteen words on a boundary of 64 bytes.
            *sum = unsafe { _mm512_load_ps(y[y_at[r] + s].0.as_ptr().cast()) };
        }
    }
    let units = w.units.as_ptr();
    for k in 0..x[0].len() {
        let mut unit = [_mm512_setzero_ps(); S];
        for (s, unit) in unit.iter_mut().enumerate() {
            let from = units.wrapping_add(k * w.step + s * w.apart);
            // SAFETY: `product` found the last `k` of the last strip inside the units.
            *unit = unsafe { _mm512_load_ps(from.cast()) };
        }
        for (sums, from) in sums.iter_mut().zip(from) {
            let from = from.wrapping_add(k);
            // SAFETY: `product` found all rows to be of one length.
            let x = _mm512_set1_ps(unsafe { *from });
            for (sum, unit) in sums.iter_mut().zip(unit) {
                *sum = _mm512_fmadd_ps(x, unit, *sum);
            }
        }
    }
    for (sums, at) in sums.iter().zip(y_at) {
        for (s, sum) in sums.iter().enumerate() {
            // SAFETY: a unit is sixteen words on a boundary of 64 bytes.
            unsafe { _mm512_store_ps(y[at + s].0.as_mut_ptr().cast(), *sum) };
        }
    }
}

/// Up to six rows by one strip: twelve sums leave four registers.
///
/// # Safety
/// As [`product`] checks.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2(w: Units<'_>, x: &[&[f32]], y: &mut [Unit], y_at: &[usize]) {
    for strip in 0..w.strips {
        let w = Units { units: &w.units[strip * w.apart..], strips: 1, ..w };
        let y = &mut y[strip..];
        let of_rows: Kernel = match x.len() {
            1 => tile_avx2::<1>,
            2 => tile_avx2::<2>,
            3 => tile_avx2::<3>,
            4 => tile_avx2::<4>,
            5 => tile_avx2::<5>,
            _ => tile_avx2::<6>,
        };
        // SAFETY: the caller's promise, and the kernel is that of so many rows.
        unsafe { of_rows(w, x, y, y_at) };
    }
}

/// # Safety
/// As [`product`] checks, with `R` rows and one strip.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn tile_avx2<const R: usize>(w: Units<'_>, x: &[&[f32]], y: &mut [Unit], y_at: &[usize]) {
    let mut sums = [[_mm256_setzero_ps(); 2]; R];
    let mut from = [std::ptr::null::<f32>(); R];
    for r in 0..R {
        from[r] = x[r].as_ptr();
        let (halves, _) = y[y_at[r]].0.as_chunks::<{ STRIP / 2 }>();
        for (sum, half) in sums[r].iter_mut().zip(halves) {
            // SAFETY: eight words, which is what is read.
            *sum = unsafe { _mm256_loadu_ps(half.as_ptr().cast()) };
        }
    }
    let units = w.units.as_ptr();
    for k in 0..x[0].len() {
        let mut unit = [_mm256_setzero_ps(); 2];
        for (half, unit) in unit.iter_mut().enumerate() {
            let from = units.wrapping_add(k * w.step).cast::<f32>().wrapping_add(half * STRIP / 2);
            // SAFETY: `product` found the last `k` inside the units, and a unit is two halves of eight words.
            *unit = unsafe { _mm256_load_ps(from) };
        }
        for (sums, from) in sums.iter_mut().zip(from) {
            let from = from.wrapping_add(k);
            // SAFETY: `product` found all rows to be of one length.
            let x = _mm256_set1_ps(unsafe { *from });
            for (sum, unit) in sums.iter_mut().zip(unit) {
                *sum = _mm256_fmadd_ps(x, unit, *sum);
            }
        }
    }
    for (sums, at) in sums.iter().zip(y_at) {
        for (sum, half) in sums.iter().zip(y[*at].0.as_chunks_mut::<{ STRIP / 2 }>().0) {
            // SAFETY: eight words, which is what is written.
            unsafe { _mm256_storeu_ps(half.as_mut_ptr().cast(), *sum) };
        }
    }
}
