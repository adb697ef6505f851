//! Tiles of prompts by AVX2: up to four rows of activations by one strip.

#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::gemm::{STRIP, Strip, Tile, Unit};
use super::{GROUP, Level, acts::ActRow};

/// Rows of activations of a tile: eight integer sums leave eight registers; float sums wait in the first-level cache.
pub(super) const ROWS: usize = 4;

/// Strips of a tile.
pub(super) const STRIPS: usize = 1;

/// Computes a tile.
pub(super) fn tile(tile: Tile<'_>) {
    assert!(tile.here.level() >= Level::Avx2);
    // SAFETY: the machine has the level.
    unsafe { by_form(tile) }
}

#[target_feature(enable = "avx2,fma")]
fn by_form(tile: Tile<'_>) {
    let [strip] = *tile.strips else { unreachable!("one strip") };
    match (tile.group == GROUP, tile.most <= 127) {
        (true, true) => by_rows::<32, true>(strip, tile.acts, tile.sums),
        (true, false) => by_rows::<32, false>(strip, tile.acts, tile.sums),
        (false, true) => by_rows::<16, true>(strip, tile.acts, tile.sums),
        (false, false) => by_rows::<16, false>(strip, tile.acts, tile.sums),
    }
}

#[target_feature(enable = "avx2,fma")]
fn by_rows<const COLS: usize, const SMALL: bool>(strip: Strip<'_>, acts: &[ActRow<'_>], sums: &mut [[f32; STRIP]]) {
    match *acts {
        [a] => run::<1, COLS, SMALL>(strip, [a], sums),
        [a, b] => run::<2, COLS, SMALL>(strip, [a, b], sums),
        [a, b, c] => run::<3, COLS, SMALL>(strip, [a, b, c], sums),
        [a, b, c, d] => run::<4, COLS, SMALL>(strip, [a, b, c, d], sums),
        _ => unreachable!("one to four rows"),
    }
}

#[target_feature(enable = "avx2,fma")]
fn run<const R: usize, const COLS: usize, const SMALL: bool>(strip: Strip<'_>, acts: [ActRow<'_>; R], sums: &mut [[f32; STRIP]]) {
    let mut y = [[_mm256_setzero_ps(); 2]; R];
    let q: [&[[i8; COLS]]; R] = acts.map(|act| act.q.as_chunks().0);
    for (g, units) in strip.values.chunks_exact(COLS / 4).enumerate() {
        let q: [&[i8; COLS]; R] = q.map(|q| &q[g]);
        let mut dots = [[_mm256_setzero_si256(); 2]; R];
        for (k, unit) in units.iter().enumerate() {
            let unit = halves(unit);
            for (dots, q) in dots.iter_mut().zip(q) {
                let q = _mm256_set1_epi32(i32::from_le_bytes(std::array::from_fn(|i| q[4 * k + i].cast_unsigned())));
                for (dot, unit) in dots.iter_mut().zip(unit) {
                    *dot = _mm256_add_epi32(*dot, if SMALL { small(unit, q) } else { large(unit, q) });
                }
            }
        }
        let scales = halves(&strip.scales[g]).map(|half| _mm256_castsi256_ps(half));
        let mins = halves(&strip.mins[g]).map(|half| _mm256_castsi256_ps(half));
        for r in 0..R {
            let a = _mm256_set1_ps(acts[r].scales[g * COLS / GROUP]);
            let t = _mm256_set1_ps(if COLS == GROUP { acts[r].sums[g] } else { acts[r].halves[g] });
            for s in 0..2 {
                y[r][s] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[r][s]), _mm256_mul_ps(scales[s], a), y[r][s]);
                y[r][s] = _mm256_fnmadd_ps(mins[s], t, y[r][s]);
            }
        }
    }
    for (to, y) in sums.as_flattened_mut().chunks_exact_mut(8).zip(y.as_flattened()) {
        // SAFETY: eight numbers, which is what is written.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), *y) };
    }
}

/// Sums of four products, where no byte is above 127: two of them are at most 2 * 127 * 127 and fit in 16 bits.
#[target_feature(enable = "avx2")]
#[inline]
fn small(u: __m256i, q: __m256i) -> __m256i {
    _mm256_madd_epi16(_mm256_maddubs_epi16(u, q), _mm256_set1_epi16(1))
}

/// Sums of four products of any bytes: the upper bit of a byte apart, since two products of 255 do not fit in 16 bits.
#[target_feature(enable = "avx2")]
#[inline]
fn large(u: __m256i, q: __m256i) -> __m256i {
    let low = _mm256_and_si256(u, _mm256_set1_epi8(127));
    let high = _mm256_and_si256(_mm256_srli_epi16(u, 7), _mm256_set1_epi8(1));
    let high = _mm256_madd_epi16(_mm256_maddubs_epi16(high, q), _mm256_set1_epi16(128));
    _mm256_add_epi32(small(low, q), high)
}

#[target_feature(enable = "avx2")]
#[inline]
fn halves(unit: &Unit) -> [__m256i; 2] {
    let (halves, _) = unit.0.as_chunks::<8>();
    // SAFETY: eight words, which is what is read.
    [0, 1].map(|half: usize| unsafe { _mm256_loadu_si256(halves[half].as_ptr().cast()) })
}
