//! The order of sums in exact mode: the one place where a reduction's order is written down.
//!
//! A sum has 32 lanes; lane `j` adds the terms `j`, `j + 32`, ... in that order, and the lanes are joined as a tree: `j` with `j + 16`,
//! then with `j + 8`, `+ 4`, `+ 2`, `+ 1`. Products are rounded before they are added (no fused multiply-add). The result depends on the
//! terms alone, never on how many rows are computed together.

#![allow(unsafe_code)]

use crate::fast::Level;

/// Lanes of a sum: two AVX-512 registers, or one subgroup of 32.
pub const LANES: usize = 32;

/// The inner product of two rows of equal length.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    match Level::best() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has the level's instructions.
        Level::Avx512 => unsafe { dot_avx512(a, b) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: likewise.
        Level::Avx2 => unsafe { dot_avx2(a, b) },
        _ => lanes_dot(a, b),
    }
}

/// Runs `work` compiled for the machine's widest registers, as far as it is inlined here. Bits do not change: products and sums stay what
/// they are, only more of them are computed at once.
pub(crate) fn wide<R>(work: impl FnOnce() -> R) -> R {
    match Level::best() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has the level's instructions.
        Level::Avx512 => unsafe { wide_avx512(work) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: likewise.
        Level::Avx2 => unsafe { wide_avx2(work) },
        _ => work(),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl")]
fn wide_avx512<R>(work: impl FnOnce() -> R) -> R {
    work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn wide_avx2<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// The same code for wider registers: additions and products stay what they are, so the bits do too.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl")]
fn dot_avx512(a: &[f32], b: &[f32]) -> f32 {
    lanes_dot(a, b)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dot_avx2(a: &[f32], b: &[f32]) -> f32 {
    lanes_dot(a, b)
}

/// [`dot`] with the instructions of whoever calls it.
#[inline(always)]
pub(crate) fn lanes_dot(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "lengths of an inner product");
    let mut lanes = [0.0f32; LANES];
    let (a_blocks, a_tail) = a.as_chunks::<LANES>();
    let (b_blocks, b_tail) = b.as_chunks::<LANES>();
    for (a_block, b_block) in a_blocks.iter().zip(b_blocks) {
        for ((lane, a), b) in lanes.iter_mut().zip(a_block).zip(b_block) {
            *lane += a * b;
        }
    }
    for ((lane, a), b) in lanes.iter_mut().zip(a_tail).zip(b_tail) {
        *lane += a * b;
    }
    join(lanes)
}

/// The sum of a row.
pub fn sum(a: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    for block in a.chunks(LANES) {
        for (lane, a) in lanes.iter_mut().zip(block) {
            *lane += a;
        }
    }
    join(lanes)
}

#[inline(always)]
fn join(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        let (low, high) = lanes.split_at_mut(half);
        low.iter_mut().zip(high).for_each(|(low, high)| *low += *high);
        half /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order is visible where rounding is: small terms that a sequential sum beside a large one would lose.
    #[test]
    fn lanes_are_joined_as_a_tree() {
        // Lane 0 holds 2^24, lanes 1 to 31 hold 1 each. A sequential sum stays at 2^24, since 2^24 + 1 rounds back.
        let mut terms = vec![1.0f32; 32];
        terms[0] = 16_777_216.0;
        // Tree: each 1 meets others first; lane 0 receives 1, 2 (not 1), 4, 8 and 16: the first 1 is lost.
        assert_eq!(sum(&terms), 16_777_216.0 + 30.0);
        assert_eq!(terms.iter().fold(0.0, |sum, term| sum + term), 16_777_216.0);
        assert_eq!(dot(&terms, &[1.0; 32]), sum(&terms));
    }

    #[test]
    fn odd_lengths_are_exact_on_whole_numbers() {
        for len in [0usize, 1, 31, 32, 33, 95, 1000] {
            let a: Vec<f32> = (0..len).map(|i| (i % 7) as f32 - 3.0).collect();
            let b: Vec<f32> = (0..len).map(|i| (i % 5) as f32).collect();
            let expected: i64 = (0..len as i64).map(|i| (i % 7 - 3) * (i % 5)).sum();
            assert_eq!(dot(&a, &b), expected as f32, "{len}");
            let c: Vec<f32> = (0..len).map(|i| (i as f32 * 0.7).sin() / 3.0).collect();
            assert_eq!(dot(&a, &c).to_bits(), lanes_dot(&a, &c).to_bits(), "{len}");
            assert_eq!(sum(&a), (0..len as i64).map(|i| i % 7 - 3).sum::<i64>() as f32, "{len}");
        }
    }
}
