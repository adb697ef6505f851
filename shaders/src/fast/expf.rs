//! The exponential of fast mode, and rows of numbers by it: the same bits at every level.
//!
//! `exp(x) = 2^n exp(r)`, where `n` is the whole number nearest to `x / ln 2` and `r = x - n ln 2` in two steps of `fma`. `exp(r)` is a
//! polynomial of degree 6 whose greatest relative error is 3e-9 (found by reweighted least squares), in Horner's order by `fma`. The result
//! is within one unit of the last place, also where it is subnormal; 0 below and infinite above what an f32 holds.

#![allow(unsafe_code)]

use super::Level;

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// From the power of 6 to that of 2; those of 1 and 0 are 1.
const POWERS: [f32; 5] = [0.001_381_459_3, 0.008_368_719, 0.041_668_39, 0.166_665_21, 0.499_999_94];
const LN_2: f32 = std::f32::consts::LN_2;
/// What `LN_2` lacks.
const LN_2_REST: f32 = -1.904_654_3e-9;
/// Below, the result is 0; above, it is infinite.
const LOWEST: f32 = -104.0;
const HIGHEST: f32 = 89.0;

/// The exponential of a number.
pub(super) fn exp(x: f32) -> f32 {
    // Written so that a NaN passes.
    let x = if x < LOWEST { LOWEST } else { x };
    let x = if x > HIGHEST { HIGHEST } else { x };
    let n = (x * std::f32::consts::LOG2_E).round_ties_even();
    let r = (-n).mul_add(LN_2_REST, (-n).mul_add(LN_2, x));
    let p = POWERS[1..].iter().fold(POWERS[0], |p, c| p.mul_add(r, *c));
    let p = p.mul_add(r, 1.0).mul_add(r, 1.0);
    // In two halves, each of which is a normal number.
    let n = n as i32;
    let power = |n: i32| f32::from_bits(((n + 127) as u32) << 23);
    p * power(n >> 1) * power(n - (n >> 1))
}

/// The exponential of sixteen numbers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn exp_16(x: __m512) -> __m512 {
    let x = _mm512_min_ps(_mm512_set1_ps(HIGHEST), _mm512_max_ps(_mm512_set1_ps(LOWEST), x));
    let n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(std::f32::consts::LOG2_E)), 0);
    let r = _mm512_fnmadd_ps(n, _mm512_set1_ps(LN_2_REST), _mm512_fnmadd_ps(n, _mm512_set1_ps(LN_2), x));
    let mut p = _mm512_set1_ps(POWERS[0]);
    for c in &POWERS[1..] {
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(*c));
    }
    let one = _mm512_set1_ps(1.0);
    // It rounds once, as the product of two powers does.
    _mm512_scalef_ps(_mm512_fmadd_ps(_mm512_fmadd_ps(p, r, one), r, one), n)
}

/// The exponential of eight numbers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn exp_8(x: __m256) -> __m256 {
    let x = _mm256_min_ps(_mm256_set1_ps(HIGHEST), _mm256_max_ps(_mm256_set1_ps(LOWEST), x));
    let n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(std::f32::consts::LOG2_E)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    let r = _mm256_fnmadd_ps(n, _mm256_set1_ps(LN_2_REST), _mm256_fnmadd_ps(n, _mm256_set1_ps(LN_2), x));
    let mut p = _mm256_set1_ps(POWERS[0]);
    for c in &POWERS[1..] {
        p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(*c));
    }
    let one = _mm256_set1_ps(1.0);
    let p = _mm256_fmadd_ps(_mm256_fmadd_ps(p, r, one), r, one);
    let n = _mm256_cvtps_epi32(n);
    let half = _mm256_srai_epi32(n, 1);
    _mm256_mul_ps(_mm256_mul_ps(p, power_8(half)), power_8(_mm256_sub_epi32(n, half)))
}

/// Powers of 2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn power_8(n: __m256i) -> __m256 {
    _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23))
}

/// `gate = silu(min(gate, limit)) * clamp(up, -limit, limit)` with `silu(x) = x / (1 + exp(-x))`; an infinite limit is none.
///
/// # Panics
/// When the rows differ in length, the limit is not positive, or the machine lacks the level.
pub fn silu_glu(level: Level, gate: &mut [f32], up: &[f32], limit: f32) {
    assert_eq!(gate.len(), up.len(), "lengths of a gate");
    assert!(level.is_here() && limit > 0.0, "{} on this machine, limit {limit}", level.name());
    let done = match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has the level.
        Level::Avx512 => unsafe { silu_16(gate, up, limit) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has the level.
        Level::Avx2 => unsafe { silu_8(gate, up, limit) },
        _ => 0,
    };
    for (gate, up) in gate.iter_mut().zip(up).skip(done) {
        let g = if *gate > limit { limit } else { *gate };
        let u = if *up < -limit { -limit } else { *up };
        let u = if u > limit { limit } else { u };
        *gate = g / (1.0 + exp(-g)) * u;
    }
}

/// Sixteen at a time; says how many it did.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
fn silu_16(gate: &mut [f32], up: &[f32], limit: f32) -> usize {
    let (high, low) = (_mm512_set1_ps(limit), _mm512_set1_ps(-limit));
    let (blocks, _) = gate.as_chunks_mut::<16>();
    for (gate, up) in blocks.iter_mut().zip(up.as_chunks::<16>().0) {
        // SAFETY: sixteen numbers, which is what is read.
        let g = unsafe { _mm512_loadu_ps(gate.as_ptr()) };
        // SAFETY: sixteen numbers, which is what is read.
        let u = unsafe { _mm512_loadu_ps(up.as_ptr()) };
        // Of two numbers of which one is a NaN, these give the second.
        let (g, u) = (_mm512_min_ps(high, g), _mm512_min_ps(high, _mm512_max_ps(low, u)));
        let e = exp_16(_mm512_xor_ps(g, _mm512_set1_ps(-0.0)));
        let y = _mm512_mul_ps(_mm512_div_ps(g, _mm512_add_ps(_mm512_set1_ps(1.0), e)), u);
        // SAFETY: sixteen numbers, which is what is written.
        unsafe { _mm512_storeu_ps(gate.as_mut_ptr(), y) };
    }
    blocks.len() * 16
}

/// Eight at a time; says how many it did.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn silu_8(gate: &mut [f32], up: &[f32], limit: f32) -> usize {
    let (high, low) = (_mm256_set1_ps(limit), _mm256_set1_ps(-limit));
    let (blocks, _) = gate.as_chunks_mut::<8>();
    for (gate, up) in blocks.iter_mut().zip(up.as_chunks::<8>().0) {
        // SAFETY: eight numbers, which is what is read.
        let g = unsafe { _mm256_loadu_ps(gate.as_ptr()) };
        // SAFETY: eight numbers, which is what is read.
        let u = unsafe { _mm256_loadu_ps(up.as_ptr()) };
        // Of two numbers of which one is a NaN, these give the second.
        let (g, u) = (_mm256_min_ps(high, g), _mm256_min_ps(high, _mm256_max_ps(low, u)));
        let e = exp_8(_mm256_xor_ps(g, _mm256_set1_ps(-0.0)));
        let y = _mm256_mul_ps(_mm256_div_ps(g, _mm256_add_ps(_mm256_set1_ps(1.0), e)), u);
        // SAFETY: eight numbers, which is what is written.
        unsafe { _mm256_storeu_ps(gate.as_mut_ptr(), y) };
    }
    blocks.len() * 8
}

#[cfg(test)]
mod tests {
    use super::super::gemm_tests::{Random, assert_same, levels};
    use super::*;

    #[test]
    fn within_a_unit_of_the_last_place() {
        let mut worst = 0f64;
        for i in 0..2_000_000u32 {
            let x = -103.9 + 192.6 * (i as f32 / 2_000_000.0);
            let (got, want) = (f64::from(exp(x)), f64::from(x).exp());
            let unit = f64::from(f32::from_bits((want as f32).to_bits() + 1)) - f64::from(want as f32);
            worst = worst.max((got - want).abs() / unit);
        }
        assert!(worst < 1.0, "off by {worst} units");
        let edges =
            [(f32::NEG_INFINITY, 0.0), (-104.0, 0.0), (0.0, 1.0), (-0.0, 1.0), (88.73, f32::INFINITY), (f32::INFINITY, f32::INFINITY)];
        edges.iter().for_each(|(x, want)| assert_eq!(exp(*x), *want, "{x}"));
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn gates_have_the_same_bits_at_every_level() {
        let mut random = Random(1);
        for limit in [f32::INFINITY, 7.0] {
            let mut gate: Vec<f32> = (0..5003).map(|_| 120.0 * random.number()).collect();
            let mut up: Vec<f32> = (0..5003).map(|_| 12.0 * random.number()).collect();
            let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1e-40, 88.7, -88.7, -89.0, -104.0];
            for (i, x) in odd.iter().enumerate() {
                (gate[30 * i], gate[30 * i + 4001], up[30 * i + 7]) = (*x, *x, *x);
            }
            let mut want = gate.clone();
            silu_glu(Level::Portable, &mut want, &up, limit);
            for level in levels() {
                let mut got = gate.clone();
                silu_glu(level, &mut got, &up, limit);
                assert_same(&got, &want, level.name());
            }
            for ((gate, up), got) in gate.iter().zip(&up).zip(&want).filter(|((gate, up), _)| gate.is_finite() && up.is_finite()) {
                let (gate, up) = (f64::from(gate.min(limit)), f64::from(up.clamp(-limit, limit)));
                let want = gate / (1.0 + (-gate).exp()) * up;
                assert!((f64::from(*got) - want).abs() <= 4e-7 * want.abs() + 1e-35, "silu({gate}) * {up} is {got}, not {want}");
            }
        }
    }
}
