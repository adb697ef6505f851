//! Tiles of prompts by AVX-512 VNNI: up to six rows of activations by two strips, whose sums stay in registers.

#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::gemm::{STRIP, Strip, Tile, Unit};
use super::{GROUP, Level, acts::ActRow};

/// Rows of activations of a tile: twelve integer and twelve float sums leave eight registers for the rest.
pub(super) const ROWS: usize = 6;

/// Strips of a tile.
pub(super) const STRIPS: usize = 2;

/// Computes a tile.
pub(super) fn tile(tile: Tile<'_>) {
    assert!(tile.here.level() == Level::Avx512);
    // SAFETY: the machine has the level.
    unsafe { by_group(tile) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
fn by_group(tile: Tile<'_>) {
    if tile.group == GROUP { by_strips::<32, 8>(tile) } else { by_strips::<16, 4>(tile) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
fn by_strips<const COLS: usize, const UNITS: usize>(tile: Tile<'_>) {
    match tile.strips {
        [a, b] => by_rows::<2, COLS, UNITS>([*a, *b], tile.acts, tile.sums),
        [a] => by_rows::<1, COLS, UNITS>([*a], tile.acts, tile.sums),
        _ => unreachable!("one or two strips"),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
fn by_rows<const S: usize, const COLS: usize, const UNITS: usize>(strips: [Strip<'_>; S], acts: &[ActRow<'_>], sums: &mut [[f32; STRIP]]) {
    match *acts {
        [a] => run::<1, S, COLS, UNITS>(strips, [a], sums),
        [a, b] => run::<2, S, COLS, UNITS>(strips, [a, b], sums),
        [a, b, c] => run::<3, S, COLS, UNITS>(strips, [a, b, c], sums),
        [a, b, c, d] => run::<4, S, COLS, UNITS>(strips, [a, b, c, d], sums),
        [a, b, c, d, e] => run::<5, S, COLS, UNITS>(strips, [a, b, c, d, e], sums),
        [a, b, c, d, e, f] => run::<6, S, COLS, UNITS>(strips, [a, b, c, d, e, f], sums),
        _ => unreachable!("one to six rows"),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
fn run<const R: usize, const S: usize, const COLS: usize, const UNITS: usize>(
    strips: [Strip<'_>; S],
    acts: [ActRow<'_>; R],
    sums: &mut [[f32; STRIP]],
) {
    let mut y = [[_mm512_setzero_ps(); S]; R];
    let values: [&[[Unit; UNITS]]; S] = strips.map(|strip| strip.values.as_chunks().0);
    let q: [&[[i8; COLS]]; R] = acts.map(|act| act.q.as_chunks().0);
    for g in 0..values[0].len() {
        let values: [&[Unit; UNITS]; S] = values.map(|values| &values[g]);
        let q: [&[i8; COLS]; R] = q.map(|q| &q[g]);
        let mut dots = [[_mm512_setzero_si512(); S]; R];
        for k in 0..UNITS {
            let units = values.map(|values| load(&values[k]));
            for (dots, q) in dots.iter_mut().zip(q) {
                let q = _mm512_set1_epi32(word(q, k));
                for (dot, unit) in dots.iter_mut().zip(units) {
                    *dot = _mm512_dpbusd_epi32(*dot, unit, q);
                }
            }
        }
        let scales = strips.map(|strip| _mm512_castsi512_ps(load(&strip.scales[g])));
        let mins = strips.map(|strip| _mm512_castsi512_ps(load(&strip.mins[g])));
        for r in 0..R {
            let a = _mm512_set1_ps(acts[r].scales[g * COLS / GROUP]);
            let t = _mm512_set1_ps(if COLS == GROUP { acts[r].sums[g] } else { acts[r].halves[g] });
            for s in 0..S {
                y[r][s] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[r][s]), _mm512_mul_ps(scales[s], a), y[r][s]);
                y[r][s] = _mm512_fnmadd_ps(mins[s], t, y[r][s]);
            }
        }
    }
    for (to, y) in sums.iter_mut().zip(y.as_flattened()) {
        // SAFETY: sixteen numbers, which is what is written.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), *y) };
    }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load(unit: &Unit) -> __m512i {
    // SAFETY: a unit is sixteen words on a boundary of 64 bytes.
    unsafe { _mm512_load_si512(unit.0.as_ptr().cast()) }
}

/// Four columns of a group of activations.
#[inline]
fn word<const COLS: usize>(q: &[i8; COLS], k: usize) -> i32 {
    i32::from_le_bytes(std::array::from_fn(|i| q[4 * k + i].cast_unsigned()))
}
