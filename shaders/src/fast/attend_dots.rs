//! Inner products of single tokens' attention, straight from stored rows. The same bits at every level.

#![allow(unsafe_code)]

use super::Level;
use super::gemm::STRIP;
use super::gemm_words::Here;

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Rows of a kernel: as many sums as hide the latency of an addition.
pub(super) const ROWS: usize = 4;

/// Sums of each row.
type Lanes = [[f32; STRIP]; ROWS];

/// A form of stored numbers.
pub(super) trait Number: Copy {
    /// As f32.
    fn wide(self) -> f32;

    /// Sixteen as f32.
    ///
    /// # Safety
    /// The machine has AVX-512 F.
    #[cfg(target_arch = "x86_64")]
    unsafe fn load_16(from: &[Self; 16]) -> __m512;

    /// Eight as f32.
    ///
    /// # Safety
    /// The machine has AVX and F16C.
    #[cfg(target_arch = "x86_64")]
    unsafe fn load_8(from: &[Self; 8]) -> __m256;
}

impl Number for f32 {
    fn wide(self) -> f32 {
        self
    }

    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load_16(from: &[Self; 16]) -> __m512 {
        // SAFETY: sixteen numbers, which is what is read.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }

    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load_8(from: &[Self; 8]) -> __m256 {
        // SAFETY: eight numbers, which is what is read.
        unsafe { _mm256_loadu_ps(from.as_ptr()) }
    }
}

impl Number for u16 {
    fn wide(self) -> f32 {
        half::f16::from_bits(self).to_f32()
    }

    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load_16(from: &[Self; 16]) -> __m512 {
        // SAFETY: sixteen halves, which is what is read.
        let bits = unsafe { _mm256_loadu_si256(from.as_ptr().cast()) };
        // SAFETY: the caller's promise.
        unsafe { _mm512_cvtph_ps(bits) }
    }

    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load_8(from: &[Self; 8]) -> __m256 {
        // SAFETY: eight halves, which is what is read.
        let bits = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
        // SAFETY: the caller's promise.
        unsafe { _mm256_cvtph_ps(bits) }
    }
}

/// Inner products of `q` with rows of its length: 16 lanes, lane `l` takes the columns `l`, `l + 16`, ... by `fma`, joined as a tree (a
/// lane with its eighth neighbour, then the fourth, ...).
///
/// # Panics
/// When a row has another length than `q`.
pub(super) fn dots<T: Number>(here: Here, q: &[f32], rows: [&[T]; ROWS], out: &mut [f32]) {
    assert!(rows.iter().all(|row| row.len() == q.len()), "rows of {} numbers", q.len());
    let mut lanes = [[0.0; STRIP]; ROWS];
    let done = match here.level() {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 if q.len().is_multiple_of(STRIP) => {
            // SAFETY: the machine has the level.
            return unsafe { whole_16(q, rows, out) };
        }
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has the level.
        Level::Avx512 | Level::Avx2 => unsafe { lanes_8(q, rows, &mut lanes) },
        _ => 0,
    };
    for (lanes, row) in lanes.iter_mut().zip(rows) {
        for (col, (q, k)) in q.iter().zip(row).enumerate().skip(done) {
            lanes[col % STRIP] = q.mul_add(k.wide(), lanes[col % STRIP]);
        }
    }
    out.iter_mut().zip(lanes).for_each(|(out, lanes)| *out = tree(lanes));
}

/// Joins lanes: each with its eighth neighbour, then the fourth, the second and the next.
pub(super) fn tree(mut lanes: [f32; STRIP]) -> f32 {
    for half in [8, 4, 2, 1] {
        let (low, high) = lanes.split_at_mut(half);
        low.iter_mut().zip(high).for_each(|(low, high)| *low += *high);
    }
    lanes[0]
}

/// The rest of [`tree`] from eight lanes on.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn tree_8(lanes: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}

/// Rows of whole registers, to the end.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
fn whole_16<T: Number>(q: &[f32], rows: [&[T]; ROWS], out: &mut [f32]) {
    let (q, _) = q.as_chunks::<16>();
    let mut sums = [_mm512_setzero_ps(); ROWS];
    for (at, q) in q.iter().enumerate() {
        // SAFETY: sixteen numbers, which is what is read.
        let q = unsafe { _mm512_loadu_ps(q.as_ptr()) };
        for (sum, row) in sums.iter_mut().zip(rows) {
            let Some(k) = row[at * 16..].first_chunk() else { break };
            // SAFETY: this function's features.
            *sum = _mm512_fmadd_ps(q, unsafe { T::load_16(k) }, *sum);
        }
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = tree_8(_mm256_add_ps(_mm512_castps512_ps256(sum), _mm512_extractf32x8_ps(sum, 1)));
    }
}

/// Lanes of as many columns as there are whole sixteens; says how many.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn lanes_8<T: Number>(q: &[f32], rows: [&[T]; ROWS], lanes: &mut Lanes) -> usize {
    let mut sums = [[_mm256_setzero_ps(); 2]; ROWS];
    let (q, _) = q.as_chunks::<8>();
    let whole = q.len() / 2 * 2;
    for (at, q) in q[..whole].iter().enumerate() {
        // SAFETY: eight numbers, which is what is read.
        let q = unsafe { _mm256_loadu_ps(q.as_ptr()) };
        for (sums, row) in sums.iter_mut().zip(rows) {
            let Some(k) = row[at * 8..].first_chunk() else { break };
            // SAFETY: this function's features.
            sums[at % 2] = _mm256_fmadd_ps(q, unsafe { T::load_8(k) }, sums[at % 2]);
        }
    }
    for (lanes, sums) in lanes.iter_mut().zip(sums) {
        for (lanes, sum) in lanes.as_chunks_mut::<8>().0.iter_mut().zip(sums) {
            // SAFETY: eight numbers, which is what is written.
            unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), sum) };
        }
    }
    whole * 8
}
