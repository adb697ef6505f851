//! Rows of attention: stored rows become f32, scores become weights. The same bits at every level.

#![allow(unsafe_code)]

use std::ops::Range;

use super::attend_dots::tree;
#[cfg(target_arch = "x86_64")]
use super::attend_dots::tree_8;
use super::gemm::{STRIP, Unit};
use super::gemm_words::Here;
use super::{Level, expf};
use crate::contract::Stored;

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Numbers as f32.
pub(super) fn decode(here: Here, from: Stored<'_>, to: &mut [f32]) {
    match from {
        Stored::Whole(from) => to.copy_from_slice(from),
        Stored::Half(from) => {
            assert_eq!(from.len(), to.len(), "numbers of a row");
            let done = match here.level() {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the machine has the level.
                Level::Avx512 => unsafe { decode_16(from, to) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the machine has the level.
                Level::Avx2 => unsafe { decode_8(from, to) },
                _ => 0,
            };
            to.iter_mut().zip(from).skip(done).for_each(|(to, bits)| *to = half::f16::from_bits(*bits).to_f32());
        }
    }
}

/// Sixteen at a time; says how many it did.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn decode_16(from: &[u16], to: &mut [f32]) -> usize {
    let (blocks, _) = to.as_chunks_mut::<16>();
    for (to, from) in blocks.iter_mut().zip(from.as_chunks::<16>().0) {
        // SAFETY: sixteen halves, which is what is read.
        let bits = unsafe { _mm256_loadu_si256(from.as_ptr().cast()) };
        let numbers = _mm512_cvtph_ps(bits);
        // SAFETY: sixteen numbers, which is what is written.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), numbers) };
    }
    blocks.len() * 16
}

/// Eight at a time; says how many it did.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx,f16c")]
fn decode_8(from: &[u16], to: &mut [f32]) -> usize {
    let (blocks, _) = to.as_chunks_mut::<8>();
    for (to, from) in blocks.iter_mut().zip(from.as_chunks::<8>().0) {
        // SAFETY: eight halves, which is what is read.
        let bits = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
        let numbers = _mm256_cvtph_ps(bits);
        // SAFETY: eight numbers, which is what is written.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), numbers) };
    }
    blocks.len() * 8
}

/// Makes weights of inner products: `scores[i]` becomes `exp(scale * scores[i] - max)` for `i` in `seen`, and 0 elsewhere in the units that
/// have such an `i`. `max` becomes the greatest scaled score, if it was not greater. Gives the sum of the weights: 16 lanes, each unit
/// after unit, joined as a tree (a lane with its eighth neighbour, then the fourth, ...).
///
/// # Panics
/// When `seen` is empty or goes beyond the scores.
pub(super) fn weigh(here: Here, scores: &mut [Unit], seen: Range<usize>, scale: f32, max: &mut f32) -> f32 {
    assert!(seen.start < seen.end, "scores {seen:?}");
    let units = seen.start / STRIP..seen.end.div_ceil(STRIP);
    let (scores, seen) = (&mut scores[units.clone()], seen.start - units.start * STRIP..seen.end - units.start * STRIP);
    match here.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has the level.
        Level::Avx512 => unsafe { weigh_16(scores, seen, scale, max) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has the level.
        Level::Avx2 => unsafe { weigh_8(scores, seen, scale, max) },
        _ => weigh_1(scores, seen, scale, max),
    }
}

fn weigh_1(scores: &mut [Unit], seen: Range<usize>, scale: f32, max: &mut f32) -> f32 {
    let scores: &mut [f32] = bytemuck::cast_slice_mut(scores);
    for (index, score) in scores.iter_mut().enumerate() {
        *score = if seen.contains(&index) { *score * scale } else { f32::NEG_INFINITY };
        *max = if *score > *max { *score } else { *max };
    }
    let mut lanes = [0.0; STRIP];
    for (index, score) in scores.iter_mut().enumerate() {
        *score = if seen.contains(&index) { expf::exp(*score - *max) } else { 0.0 };
        lanes[index % STRIP] += *score;
    }
    tree(lanes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
fn weigh_16(scores: &mut [Unit], seen: Range<usize>, scale: f32, max: &mut f32) -> f32 {
    let low = _mm512_set1_ps(f32::NEG_INFINITY);
    let mask = |unit: usize| {
        let below = |end: usize| (1u32 << end.saturating_sub(unit * STRIP).min(STRIP)) - 1;
        (below(seen.end) & !below(seen.start)) as __mmask16
    };
    let mut most = low;
    for (unit, score) in scores.iter_mut().enumerate() {
        let scaled = _mm512_mask_mul_ps(low, mask(unit), load_16(score), _mm512_set1_ps(scale));
        most = _mm512_max_ps(scaled, most);
        store_16(score, scaled);
    }
    // A NaN was left out, as the twin leaves it out: it shows in the sum.
    let most = _mm512_reduce_max_ps(most);
    *max = if most > *max { most } else { *max };
    let mut lanes = _mm512_setzero_ps();
    for (unit, score) in scores.iter_mut().enumerate() {
        let weight = expf::exp_16(_mm512_sub_ps(load_16(score), _mm512_set1_ps(*max)));
        let weight = _mm512_maskz_mov_ps(mask(unit), weight);
        lanes = _mm512_add_ps(lanes, weight);
        store_16(score, weight);
    }
    tree_8(_mm256_add_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps(lanes, 1)))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
#[inline]
fn load_16(unit: &Unit) -> __m512 {
    // SAFETY: a unit is sixteen words on a boundary of 64 bytes.
    unsafe { _mm512_load_ps(unit.0.as_ptr().cast()) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
#[inline]
fn store_16(unit: &mut Unit, numbers: __m512) {
    // SAFETY: a unit is sixteen words on a boundary of 64 bytes.
    unsafe { _mm512_store_ps(unit.0.as_mut_ptr().cast(), numbers) };
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn weigh_8(scores: &mut [Unit], seen: Range<usize>, scale: f32, max: &mut f32) -> f32 {
    let lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let mask = |half: usize| {
        let index = _mm256_add_epi32(lane, _mm256_set1_epi32((half * 8) as i32));
        let below = |end: usize| _mm256_cmpgt_epi32(_mm256_set1_epi32(end as i32), index);
        _mm256_castsi256_ps(_mm256_andnot_si256(below(seen.start), below(seen.end)))
    };
    let low = _mm256_set1_ps(f32::NEG_INFINITY);
    let mut most = low;
    let (halves, _) = bytemuck::cast_slice_mut::<_, f32>(scores).as_chunks_mut::<8>();
    for (half, score) in halves.iter_mut().enumerate() {
        // SAFETY: eight numbers, which is what is read.
        let number = unsafe { _mm256_loadu_ps(score.as_ptr()) };
        let scaled = _mm256_blendv_ps(low, _mm256_mul_ps(number, _mm256_set1_ps(scale)), mask(half));
        most = _mm256_max_ps(scaled, most);
        // SAFETY: eight numbers, which is what is written.
        unsafe { _mm256_storeu_ps(score.as_mut_ptr(), scaled) };
    }
    let mut all = [0.0; 8];
    // SAFETY: eight numbers, which is what is written.
    unsafe { _mm256_storeu_ps(all.as_mut_ptr(), most) };
    all.iter().for_each(|most| *max = if *most > *max { *most } else { *max });
    let mut lanes = [_mm256_setzero_ps(); 2];
    for (half, score) in halves.iter_mut().enumerate() {
        // SAFETY: eight numbers, which is what is read.
        let number = unsafe { _mm256_loadu_ps(score.as_ptr()) };
        let weight = _mm256_and_ps(expf::exp_8(_mm256_sub_ps(number, _mm256_set1_ps(*max))), mask(half));
        lanes[half % 2] = _mm256_add_ps(lanes[half % 2], weight);
        // SAFETY: eight numbers, which is what is written.
        unsafe { _mm256_storeu_ps(score.as_mut_ptr(), weight) };
    }
    tree_8(_mm256_add_ps(lanes[0], lanes[1]))
}

/// Every number times a factor.
pub(super) fn scale(here: Here, numbers: &mut [Unit], factor: f32) {
    match here.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has the level.
        Level::Avx512 => unsafe { scale_16(numbers, factor) },
        _ => bytemuck::cast_slice_mut::<_, f32>(numbers).iter_mut().for_each(|number| *number *= factor),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn scale_16(numbers: &mut [Unit], factor: f32) {
    numbers.iter_mut().for_each(|unit| store_16(unit, _mm512_mul_ps(load_16(unit), _mm512_set1_ps(factor))));
}

/// Asks for numbers that will be wanted soon: rows of a head lie far apart, which processors do not foresee.
#[inline]
pub(super) fn prefetch<T>(numbers: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in numbers.chunks(64 / size_of::<T>()) {
        // SAFETY: a hint, and of memory that is there.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = numbers;
}
