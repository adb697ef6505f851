//! Products of a few rows of f32 activations with rows of floats: the kernels of single tokens for formats without a panel, and a kernel
//! for any format by its decoder.
//!
//! Lanes are those of the signature for floats in [`super`]; a row ends in zeros up to a multiple of 16. There is one kernel for AVX2 and
//! more: it is as fast as memory, and with 512 bits it would be no faster.
#![allow(unsafe_code)]

use std::ops::Range;

use super::Level;
use crate::formats::{Format, WeightView};

/// Lanes of a sum.
const LANES: usize = 16;

/// The products of the rows `x` with rows `rows` of `w`: `out` has, for each of `x`, the products with all rows of the range, one after
/// the other.
///
/// # Panics
/// When the machine lacks the level, the range is not inside the matrix, or sizes differ.
pub fn gemv_float(level: Level, w: &WeightView<'_>, rows: Range<usize>, x: &[&[f32]], out: &mut [f32]) {
    assert!(level.is_here(), "{level:?} is not here");
    assert!(rows.start <= rows.end && rows.end <= w.rows(), "rows {rows:?} of {}", w.rows());
    assert!(x.iter().all(|x| x.len() == w.cols()) && out.len() == rows.len() * x.len(), "{} numbers of {} rows", out.len(), x.len());
    #[cfg(target_arch = "x86_64")]
    if level >= Level::Avx2 && w.cols() > 0 {
        let bytes = |rows: Range<usize>| w.rows_of(rows).0;
        return match kernel(w.format()) {
            Kernel::F32 => avx2::gemv::<avx2::F32>(bytes(rows), x, out),
            Kernel::F16 => avx2::gemv::<avx2::F16>(bytes(rows), x, out),
            Kernel::Bf16 => avx2::gemv::<avx2::Bf16>(bytes(rows), x, out),
            Kernel::Decoded => decoded(level, w, rows, x, out),
        };
    }
    let mut row = vec![0.0; w.cols()];
    let count = rows.len();
    for (at, index) in rows.enumerate() {
        w.decode_row(index, &mut row);
        for (x, out) in x.iter().zip(out.chunks_exact_mut(count)) {
            out[at] = dot(&row, x);
        }
    }
}

/// What [`gemv_float`] reads of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kernel {
    F32,
    F16,
    Bf16,
    /// Rows that its decoder made f32.
    Decoded,
}

fn kernel(format: Format) -> Kernel {
    let kernels = [(Format::F32, Kernel::F32), (Format::F16, Kernel::F16), (Format::BF16, Kernel::Bf16)];
    kernels.into_iter().find(|(of, _)| *of == format).map_or(Kernel::Decoded, |(_, kernel)| kernel)
}

/// Rows decoded four at a time.
#[cfg(target_arch = "x86_64")]
fn decoded(level: Level, w: &WeightView<'_>, rows: Range<usize>, x: &[&[f32]], out: &mut [f32]) {
    const FOUR: usize = 4;
    let (cols, start, count) = (w.cols(), rows.start, rows.len());
    let mut numbers = vec![0.0; FOUR * cols];
    let mut products = vec![0.0; FOUR * x.len()];
    for first in rows.clone().step_by(FOUR) {
        let some = FOUR.min(rows.end - first);
        for (row, numbers) in numbers.chunks_exact_mut(cols).enumerate().take(some) {
            w.decode_row_at(level, first + row, numbers);
        }
        avx2::gemv::<avx2::F32>(bytemuck::cast_slice(&numbers[..some * cols]), x, &mut products[..some * x.len()]);
        for (products, out) in products.chunks_exact(some).zip(out.chunks_exact_mut(count)) {
            out[first - start..][..some].copy_from_slice(products);
        }
    }
}

/// The twin.
fn dot(w: &[f32], x: &[f32]) -> f32 {
    let mut lanes = [0f32; LANES];
    for (w, x) in w.chunks(LANES).zip(x.chunks(LANES)) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            let [w, x] = [w, x].map(|row| row.get(lane).copied().unwrap_or(0.0));
            *sum = w.mul_add(x, *sum);
        }
    }
    super::gemv::tree(lanes)
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{LANES, Level};

    /// Bytes ahead of what is read now that are asked for, into the second-level cache, as in `super::gemv`.
    const AHEAD: usize = 8192;

    /// Eight numbers as they are stored.
    pub(super) trait Stored {
        /// Bytes of a number.
        const BYTES: usize;

        /// Eight of them.
        ///
        /// # Safety
        /// The machine has AVX2 and F16C, and there are eight numbers.
        unsafe fn eight(at: *const u8) -> __m256;
    }

    pub(super) struct F32;
    pub(super) struct F16;
    pub(super) struct Bf16;

    impl Stored for F32 {
        const BYTES: usize = 4;

        // SAFETY: the caller promises what the trait asks for: the machine has the instructions, and there are eight numbers.
        #[target_feature(enable = "avx2,f16c,fma")]
        #[inline]
        unsafe fn eight(at: *const u8) -> __m256 {
            // SAFETY: there are eight.
            unsafe { _mm256_loadu_ps(at.cast()) }
        }
    }

    impl Stored for F16 {
        const BYTES: usize = 2;

        // SAFETY: the caller promises what the trait asks for: the machine has the instructions, and there are eight numbers.
        #[target_feature(enable = "avx2,f16c,fma")]
        #[inline]
        unsafe fn eight(at: *const u8) -> __m256 {
            // SAFETY: there are eight.
            _mm256_cvtph_ps(unsafe { _mm_loadu_si128(at.cast()) })
        }
    }

    impl Stored for Bf16 {
        const BYTES: usize = 2;

        // SAFETY: the caller promises what the trait asks for: the machine has the instructions, and there are eight numbers.
        #[target_feature(enable = "avx2,f16c,fma")]
        #[inline]
        unsafe fn eight(at: *const u8) -> __m256 {
            // SAFETY: there are eight.
            let words = _mm256_cvtepu16_epi32(unsafe { _mm_loadu_si128(at.cast()) });
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(words))
        }
    }

    /// The products of rows that follow each other in `bytes` with the rows `x`, each as long and not empty.
    pub(super) fn gemv<T: Stored>(bytes: &[u8], x: &[&[f32]], out: &mut [f32]) {
        let (Some(first), count) = (x.first(), out.len() / x.len().max(1)) else { return };
        let cols = first.len();
        assert!(Level::Avx2.is_here() && bytes.len() == count * cols * T::BYTES && x.iter().all(|x| x.len() == cols));
        // SAFETY: the level is here, and sizes are those that were asserted.
        unsafe { all::<T>(bytes, cols, count, x, out) }
    }

    /// # Safety
    /// There are `count` rows of `cols` numbers in `bytes`, and `cols` in each of `x`.
    #[target_feature(enable = "avx2,f16c,fma")]
    unsafe fn all<T: Stored>(bytes: &[u8], cols: usize, count: usize, x: &[&[f32]], out: &mut [f32]) {
        let row = |at: usize| bytes.as_ptr().wrapping_add(at * cols * T::BYTES);
        let mut at = 0;
        while at < count {
            let some = if x.len() == 1 && at + 4 <= count { 4 } else { 2.min(count - at) };
            let (pairs, rest) = x.as_chunks::<2>();
            let mut out = out.chunks_exact_mut(count);
            // SAFETY, of all: the rows from `at` are among `count`.
            for pair in if some == 4 { &[][..] } else { pairs } {
                let mut put = |y: [f32; 2]| {
                    if let Some(out) = out.next() {
                        out[at..][..some].copy_from_slice(&y[..some]);
                    }
                };
                let x = [pair[0].as_ptr(), pair[1].as_ptr()];
                // SAFETY: see above. Where one row is left it is taken twice.
                let y = unsafe { block::<T, 2, 2>([row(at), row(at + some - 1)], x, cols) };
                put([y[0][0], y[1][0]]);
                put([y[0][1], y[1][1]]);
            }
            for (x, out) in rest.iter().zip(out) {
                if some == 4 {
                    // SAFETY: see above.
                    let y = unsafe { block::<T, 4, 1>([row(at), row(at + 1), row(at + 2), row(at + 3)], [x.as_ptr()], cols) };
                    out[at..][..4].copy_from_slice(y.as_flattened());
                } else {
                    // SAFETY: see above.
                    let y = unsafe { block::<T, 2, 1>([row(at), row(at + some - 1)], [x.as_ptr()], cols) };
                    out[at..][..some].copy_from_slice(&y.as_flattened()[..some]);
                }
            }
            at += some;
        }
    }

    /// # Safety
    /// There are `cols` numbers in each row.
    #[target_feature(enable = "avx2,f16c,fma")]
    #[inline]
    unsafe fn block<T: Stored, const R: usize, const N: usize>(rows: [*const u8; R], x: [*const f32; N], cols: usize) -> [[f32; N]; R] {
        let mut sums = [[[_mm256_setzero_ps(); 2]; N]; R];
        for step in 0..cols / LANES {
            let (rows, x) = (rows.map(|row| row.wrapping_add(step * LANES * T::BYTES)), x.map(|x| x.wrapping_add(step * LANES)));
            // SAFETY: `step` is of sixteen columns that there are.
            unsafe { add::<T, R, N>(&mut sums, rows, x) };
        }
        let (whole, rest) = (cols / LANES * LANES, cols % LANES);
        if rest > 0 {
            let (mut last, mut numbers) = ([[0u8; LANES * 4]; R], [[0f32; LANES]; N]);
            for (last, row) in last.iter_mut().zip(rows) {
                // SAFETY: so many bytes are left, fewer than those of sixteen numbers.
                unsafe { std::ptr::copy_nonoverlapping(row.wrapping_add(whole * T::BYTES), last.as_mut_ptr(), rest * T::BYTES) };
            }
            for (numbers, x) in numbers.iter_mut().zip(x) {
                // SAFETY: so many numbers are left, fewer than sixteen.
                unsafe { std::ptr::copy_nonoverlapping(x.wrapping_add(whole), numbers.as_mut_ptr(), rest) };
            }
            let (mut from, mut of) = ([std::ptr::null(); R], [std::ptr::null(); N]);
            from.iter_mut().zip(&last).for_each(|(from, last)| *from = last.as_ptr());
            of.iter_mut().zip(&numbers).for_each(|(of, numbers)| *of = numbers.as_ptr());
            // SAFETY: both have sixteen numbers.
            unsafe { add::<T, R, N>(&mut sums, from, of) };
        }
        let mut y = [[0.0; N]; R];
        for r in 0..R {
            for n in 0..N {
                y[r][n] = tree(sums[r][n]);
            }
        }
        y
    }

    /// Adds sixteen columns.
    ///
    /// # Safety
    /// There are sixteen numbers at each place.
    #[target_feature(enable = "avx2,f16c,fma")]
    #[inline]
    unsafe fn add<T: Stored, const R: usize, const N: usize>(sums: &mut [[[__m256; 2]; N]; R], rows: [*const u8; R], x: [*const f32; N]) {
        let mut numbers = [[_mm256_setzero_ps(); 2]; N];
        for n in 0..N {
            for (half, numbers) in numbers[n].iter_mut().enumerate() {
                // SAFETY: there are sixteen.
                *numbers = unsafe { _mm256_loadu_ps(x[n].wrapping_add(8 * half)) };
            }
        }
        for r in 0..R {
            _mm_prefetch::<_MM_HINT_T1>(rows[r].wrapping_add(AHEAD).cast());
            for half in 0..2 {
                // SAFETY: there are sixteen.
                let w = unsafe { T::eight(rows[r].wrapping_add(8 * half * T::BYTES)) };
                for n in 0..N {
                    sums[r][n][half] = _mm256_fmadd_ps(w, numbers[n][half], sums[r][n][half]);
                }
            }
        }
    }

    /// The tree of the signature.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn tree([low, high]: [__m256; 2]) -> f32 {
        let eight = _mm256_add_ps(low, high);
        let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::gemv::tests::{Random, same};

    fn floats() -> Vec<Format> {
        Format::ALL.iter().copied().filter(|format| format.panel().is_none()).collect()
    }

    /// Any bytes; `usual` leaves out exponents that make infinities, NaNs and huge scales.
    fn matrix(format: Format, rows: usize, cols: usize, usual: bool, random: &mut Random) -> Vec<u8> {
        let calm = |byte: u8| if byte & 0x40 == 0 { byte } else { byte & 0xc1 };
        let bytes = format.matrix_bytes(rows, cols).unwrap();
        (0..bytes).map(|_| if usual { calm(random.byte()) } else { random.byte() }).collect()
    }

    fn run(level: Level, w: &WeightView<'_>, rows: Range<usize>, x: &[&[f32]]) -> Vec<f32> {
        let mut out = vec![9.0; rows.len() * x.len()];
        gemv_float(level, w, rows, x, &mut out);
        out
    }

    /// Formats of floats, and one of small integers by its decoder.
    #[test]
    fn every_level_has_the_bits_of_the_twin() {
        let mut random = Random(6);
        for format in floats().into_iter().chain([Format::INT8_G64]) {
            for (cols, usual) in [1, 7, 15, 16, 17, 31, 130, 256, 300].into_iter().flat_map(|cols| [(cols, true), (cols, false)]) {
                let bytes = matrix(format, 11, cols, usual, &mut random);
                let w = WeightView::new(format, 11, cols, &bytes).unwrap();
                let numbers: Vec<f32> = (0..5 * cols).map(|_| random.number()).collect();
                let x: Vec<&[f32]> = numbers.chunks_exact(cols).collect();
                let want = run(Level::Portable, &w, 0..11, &x);
                for level in Level::ALL.into_iter().filter(|level| level.is_here()) {
                    for (rows, some) in [(0..11, 0..5), (3..4, 0..1), (1..10, 2..3), (0..6, 1..3), (2..5, 0..3), (4..4, 0..1)] {
                        let mut got = run(level, &w, rows.clone(), &x[some.clone()]).into_iter();
                        for (x, row) in some.flat_map(|x| rows.clone().map(move |row| (x, row))) {
                            let (got, want) = (got.next().unwrap(), want[x * 11 + row]);
                            assert!(same(got, want), "{format:?} {level:?} {cols} {x} {row}: {got:e}, {want:e}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn products_are_near_the_sum_in_f64() {
        let mut random = Random(7);
        for format in floats() {
            let (rows, cols) = (4, 333);
            let bytes = matrix(format, rows, cols, true, &mut random);
            let w = WeightView::new(format, rows, cols, &bytes).unwrap();
            let x: Vec<f32> = (0..cols).map(|_| random.number()).collect();
            for (row, got) in run(Level::best(), &w, 0..rows, &[&x]).into_iter().enumerate() {
                let mut numbers = vec![0.0; cols];
                w.decode_row(row, &mut numbers);
                let products = numbers.iter().zip(&x).map(|(w, x)| f64::from(*w) * f64::from(*x));
                let (sum, size) = products.fold((0.0, 0.0), |(sum, size), product| (sum + product, size + product.abs()));
                assert!((f64::from(got) - sum).abs() <= size * 4e-6, "{format:?} {row}: {got} is not {sum}");
            }
        }
    }

    #[test]
    fn formats_have_the_kernels_that_are_promised() {
        let kernels = [Format::F32, Format::F16, Format::BF16, Format::FP8_ROW_F32].map(kernel);
        assert_eq!(kernels, [Kernel::F32, Kernel::F16, Kernel::Bf16, Kernel::Decoded]);
    }

    /// Decoders of a level have the exact decoder's bits.
    #[test]
    fn rows_decode_to_the_same_bits_at_every_level() {
        let mut random = Random(8);
        for format in floats() {
            let (rows, cols) = (3, 300);
            let bytes = matrix(format, rows, cols, false, &mut random);
            let w = WeightView::new(format, rows, cols, &bytes).unwrap();
            for (row, level) in (0..rows).flat_map(|row| Level::ALL.map(|level| (row, level))).filter(|(_, level)| level.is_here()) {
                let (mut want, mut got) = (vec![0.0; cols], vec![9.0; cols]);
                w.decode_row(row, &mut want);
                w.decode_row_at(level, row, &mut got);
                assert!(got.iter().zip(&want).all(|(got, want)| same(*got, *want)), "{format:?} {level:?}");
            }
        }
    }
}
