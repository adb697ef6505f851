//! Weighed sums of single tokens' attention, straight from stored rows. The same bits at every level.

#![allow(unsafe_code)]

use super::Level;
use super::attend_dots::Number;
use super::gemm::{STRIP, Unit};
use super::gemm_words::Here;

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Heads that a kernel takes together.
pub(super) const HEADS: usize = 4;

/// For each head `h` and column `c`: `y = fma(weights[h][r], rows[r][c], y)`, row after row, where the head's `y` begins at unit `y_at[h]`.
///
/// # Panics
/// When rows or weights differ in length, or a sum is missing.
pub(super) fn add<T: Number>(here: Here, weights: &[&[f32]], rows: &[&[T]], y: &mut [Unit], y_at: &[usize]) {
    let width = rows.first().map_or(0, |row| row.len());
    assert!(rows.iter().all(|row| row.len() == width), "rows of {width} numbers");
    assert!(weights.len() == y_at.len() && weights.iter().all(|weights| weights.len() == rows.len()), "weights of {} rows", rows.len());
    assert!(y_at.iter().all(|at| at + width.div_ceil(STRIP) <= y.len()), "sums of {width} numbers");
    let done = match here.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has the level.
        Level::Avx512 => unsafe { add_16(weights, rows, y, y_at) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has the level.
        Level::Avx2 => unsafe { add_8(weights, rows, y, y_at) },
        _ => 0,
    };
    if done == width {
        return;
    }
    let y: &mut [f32] = bytemuck::cast_slice_mut(y);
    for (weights, at) in weights.iter().zip(y_at) {
        for (weight, row) in weights.iter().zip(rows) {
            let y = &mut y[at * STRIP..][done..width];
            y.iter_mut().zip(&row[done..]).for_each(|(y, v)| *y = weight.mul_add(v.wide(), *y));
        }
    }
}

/// Whole sixteens of columns; says how many columns.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn add_16<T: Number>(weights: &[&[f32]], rows: &[&[T]], y: &mut [Unit], y_at: &[usize]) -> usize {
    let strips = rows.first().map_or(0, |row| row.len()) / STRIP;
    for (weights, y_at) in weights.chunks(HEADS).zip(y_at.chunks(HEADS)) {
        let mut strip = 0;
        while strip < strips {
            strip += if strips - strip >= 4 {
                heads_16::<4, T>(weights, rows, strip, y, y_at)
            } else {
                heads_16::<1, T>(weights, rows, strip, y, y_at)
            };
        }
    }
    strips * STRIP
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn heads_16<const S: usize, T: Number>(weights: &[&[f32]], rows: &[&[T]], strip: usize, y: &mut [Unit], y_at: &[usize]) -> usize {
    match (weights, y_at) {
        ([a], [i]) => tile_16::<1, S, T>([*a], rows, strip, y, [*i]),
        ([a, b], [i, j]) => tile_16::<2, S, T>([*a, *b], rows, strip, y, [*i, *j]),
        ([a, b, c], [i, j, k]) => tile_16::<3, S, T>([*a, *b, *c], rows, strip, y, [*i, *j, *k]),
        ([a, b, c, d], [i, j, k, l]) => tile_16::<4, S, T>([*a, *b, *c, *d], rows, strip, y, [*i, *j, *k, *l]),
        _ => unreachable!("one to four heads"),
    }
    S
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn tile_16<const R: usize, const S: usize, T: Number>(weights: [&[f32]; R], rows: &[&[T]], strip: usize, y: &mut [Unit], y_at: [usize; R]) {
    let mut sums = [[_mm512_setzero_ps(); S]; R];
    for (sums, at) in sums.iter_mut().zip(y_at) {
        for (sum, unit) in sums.iter_mut().zip(&y[at + strip..]) {
            // SAFETY: a unit is sixteen words on a boundary of 64 bytes.
            *sum = unsafe { _mm512_load_ps(unit.0.as_ptr().cast()) };
        }
    }
    for (index, row) in rows.iter().enumerate() {
        let (columns, _) = row[strip * STRIP..].as_chunks::<16>();
        let mut v = [_mm512_setzero_ps(); S];
        for (v, columns) in v.iter_mut().zip(columns) {
            // SAFETY: this function's features.
            *v = unsafe { T::load_16(columns) };
        }
        for (sums, weights) in sums.iter_mut().zip(weights) {
            let weight = _mm512_set1_ps(weights[index]);
            for (sum, v) in sums.iter_mut().zip(v) {
                *sum = _mm512_fmadd_ps(weight, v, *sum);
            }
        }
    }
    for (sums, at) in sums.iter().zip(y_at) {
        for (sum, unit) in sums.iter().zip(&mut y[at + strip..]) {
            // SAFETY: a unit is sixteen words on a boundary of 64 bytes.
            unsafe { _mm512_store_ps(unit.0.as_mut_ptr().cast(), *sum) };
        }
    }
}

/// Whole sixteens of columns, head by head; says how many columns.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn add_8<T: Number>(weights: &[&[f32]], rows: &[&[T]], y: &mut [Unit], y_at: &[usize]) -> usize {
    let strips = rows.first().map_or(0, |row| row.len()) / STRIP;
    for (weights, at) in weights.iter().zip(y_at) {
        let y: &mut [f32] = bytemuck::cast_slice_mut(&mut y[*at..][..strips]);
        let (halves, _) = y.as_chunks_mut::<8>();
        let mut first = 0;
        for some in halves.chunks_mut(4) {
            let mut sums = [_mm256_setzero_ps(); 4];
            for (sum, half) in sums.iter_mut().zip(&*some) {
                // SAFETY: eight numbers, which is what is read.
                *sum = unsafe { _mm256_loadu_ps(half.as_ptr()) };
            }
            for (weight, row) in weights.iter().zip(rows) {
                let (columns, _) = row[first * 8..].as_chunks::<8>();
                for (sum, columns) in sums.iter_mut().zip(columns) {
                    // SAFETY: this function's features.
                    *sum = _mm256_fmadd_ps(_mm256_set1_ps(*weight), unsafe { T::load_8(columns) }, *sum);
                }
            }
            for (sum, half) in sums.iter().zip(some.iter_mut()) {
                // SAFETY: eight numbers, which is what is written.
                unsafe { _mm256_storeu_ps(half.as_mut_ptr(), *sum) };
            }
            first += some.len();
        }
    }
    strips * STRIP
}
