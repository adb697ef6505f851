//! Units of weights in registers, eight lanes at a time: what AVX2 has, for the kernels of every level.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::ops::Range;

use crate::fast::panel::{Direct, Panel, PanelRow, Row, Unit, Units, put};
use crate::fast::{Acts, Level};
use crate::formats::blocks;

use super::{avx2, avx512};

/// Eight numbers for each of two halves: of 16 groups, or of 8 in the first half.
pub(crate) type Numbers = [__m256; 2];

/// The scales and the minimums of a unit.
#[derive(Clone, Copy)]
pub(crate) struct Scales {
    pub(crate) s: Numbers,
    pub(crate) m: Numbers,
}

/// A format whose units decode in registers.
pub(crate) trait Registers<const B: usize, const S: usize, const G: usize>: Units<B, S, G> {
    /// The scales of a unit.
    ///
    /// # Safety
    /// The machine has AVX2, FMA and F16C.
    unsafe fn scales(values: &[u8; B], scales: &[u8; S]) -> Scales;

    /// The bytes `u` of a unit, 32 columns each.
    ///
    /// # Safety
    /// The machine has AVX2, FMA and F16C.
    unsafe fn codes(values: &[u8; B]) -> [__m256i; 8];
}

/// The kernels of such a format.
pub(crate) const fn direct<F: Registers<B, S, G>, const B: usize, const S: usize, const G: usize>() -> Direct {
    Direct { avx512: Some(avx512::gemv::<F, B, S, G>), avx2: Some(avx2::gemv::<F, B, S, G>), decode: Some(decode::<F, B, S, G>) }
}

/// A panel's decoder.
///
/// # Safety
/// The machine has AVX2, FMA and F16C.
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) unsafe fn decode<F: Registers<B, S, G>, const B: usize, const S: usize, const G: usize>(
    values: &[u8],
    scales: &[u8],
    out: &mut PanelRow<'_>,
) {
    let row = Row::<B, S>::new(values, scales, F::PER_ROW);
    let tail = row.tail(F::PER_ROW);
    let (bytes, groups) = (out.values.chunks_mut(256), out.scales.chunks_mut(G).zip(out.mins.chunks_mut(G)));
    for (index, (bytes, (scales, mins))) in bytes.zip(groups).enumerate() {
        let (v, s) = row.unit(index, &tail);
        // SAFETY: this function's features are those that it needs.
        let unit = unsafe { F::scales(v, s) };
        // SAFETY: see above.
        let codes = unsafe { F::codes(v) };
        put(bytes, &stored::<u8, 256, _>(codes));
        scales.chunks_mut(8).zip(&unit.s).for_each(|(out, s)| put(out, &stored::<f32, 8, _>(*s)));
        mins.chunks_mut(8).zip(&unit.m).for_each(|(out, m)| put(out, &stored::<f32, 8, _>(*m)));
    }
}

/// Vectors as an array.
#[inline(always)]
fn stored<T: bytemuck::Pod, const N: usize, V: Copy>(vectors: V) -> [T; N] {
    const { assert!(size_of::<T>() * N == size_of::<V>()) };
    // SAFETY: both have one size, and `Pod` takes any bytes.
    unsafe { std::mem::transmute_copy(&vectors) }
}

/// The kernels of panels.
pub(super) fn of_panel(
    level: Level,
    panel: &Panel,
    weights: (&[u8], &[u8]),
    rows: usize,
    acts: &Acts,
    act_rows: Range<usize>,
    out: &mut [f32],
) {
    let kernel = match (level == Level::Avx512, panel.group == 16, panel.most > 127) {
        (true, true, _) => avx512::of_bytes::<AsPanel<true>, 256, 128, 16>,
        (true, false, _) => avx512::of_bytes::<AsPanel<true>, 256, 64, 8>,
        (false, true, true) => avx2::of_bytes::<AsPanel<true>, 256, 128, 16>,
        (false, true, false) => avx2::of_bytes::<AsPanel<false>, 256, 128, 16>,
        (false, false, true) => avx2::of_bytes::<AsPanel<true>, 256, 64, 8>,
        (false, false, false) => avx2::of_bytes::<AsPanel<false>, 256, 64, 8>,
    };
    kernel(weights, rows, acts, act_rows, out);
}

/// 32 bytes.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn load32<T: bytemuck::Pod>(bytes: &[T; 32]) -> __m256i {
    const { assert!(size_of::<T>() == 1) };
    // SAFETY: there are 32 bytes.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// 16 bytes.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn load16(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: there are 16 bytes.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// Eight numbers.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn eight(numbers: &[f32; 8]) -> __m256 {
    // SAFETY: there are eight.
    unsafe { _mm256_loadu_ps(numbers.as_ptr()) }
}

/// The binary16 at a byte, in all lanes.
#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(crate) fn half(bytes: &[u8], at: usize) -> __m256 {
    _mm256_cvtph_ps(_mm_set1_epi16(blocks::word(bytes, at).cast_signed()))
}

/// Eight binary16 numbers that begin blocks of `STEP` bytes.
#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(crate) fn halves_every<const STEP: usize>(bytes: &[u8]) -> __m256 {
    let [low, high] = blocks::words_every::<STEP>(bytes);
    _mm256_cvtph_ps(_mm_set_epi64x(high.cast_signed(), low.cast_signed()))
}

/// The lower nibbles of 16 bytes, then the upper ones.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn nibbles(bytes: &[u8; 16]) -> __m256i {
    let low = load16(bytes);
    let both = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), _mm_srli_epi16::<4>(low));
    _mm256_and_si256(both, _mm256_set1_epi8(15))
}

/// The nibbles of 16 bytes, the lower one of each first.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn pairs(bytes: &[u8; 16]) -> __m256i {
    // A word for each byte: the upper nibble moves to the upper byte.
    let words = _mm256_cvtepu8_epi16(load16(bytes));
    _mm256_and_si256(_mm256_or_si256(words, _mm256_slli_epi16::<4>(words)), _mm256_set1_epi8(15))
}

/// The lower nibbles of 32 bytes, then the upper ones, four times.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn planes(bytes: &[u8; 128]) -> [__m256i; 8] {
    let low = _mm256_set1_epi8(15);
    let mut u = [low; 8];
    for pair in 0..4 {
        let both = load32(blocks::at::<32>(bytes, pair * 32));
        u[2 * pair] = _mm256_and_si256(both, low);
        u[2 * pair + 1] = _mm256_and_si256(_mm256_srli_epi16::<4>(both), low);
    }
    u
}

/// A table of sixteen bytes, for each half.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn table(bytes: &[u8; 16]) -> __m256i {
    _mm256_broadcastsi128_si256(load16(bytes))
}

/// Four f32 scales twice each, or one eight times.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn groups<const S: usize>(scales: &[u8; S]) -> __m256 {
    if S == 4 {
        return _mm256_set1_ps(f32::from_le_bytes(*blocks::at(scales, 0)));
    }
    let four = _mm256_castsi128_si256(load16(blocks::at(scales, 0)));
    _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(four, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)))
}

/// Half of `2^(code-127)`, for codes in 32 bits: see `fp4`.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn half_e8m0(codes: __m256i) -> __m256 {
    let normal = _mm256_slli_epi32::<23>(_mm256_sub_epi32(codes, _mm256_set1_epi32(1)));
    let small = _mm256_sllv_epi32(_mm256_set1_epi32(0x0020_0000), codes);
    let is_small = _mm256_cmpgt_epi32(_mm256_set1_epi32(2), codes);
    _mm256_castsi256_ps(_mm256_blendv_epi8(normal, small, is_small))
}

/// Scales, and their products with what offsets the codes.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn offset<const G: usize>(s: Numbers, zero: f32) -> Scales {
    let zero = _mm256_set1_ps(zero);
    Scales { s, m: [_mm256_mul_ps(s[0], zero), if G == 16 { _mm256_mul_ps(s[1], zero) } else { s[1] }] }
}

/// Writes eight numbers.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn store(to: &mut [f32; 8], numbers: __m256) {
    // SAFETY: there is room for eight.
    unsafe { _mm256_storeu_ps(to.as_mut_ptr(), numbers) }
}

/// A panel's own units: bytes, scales and minimums, for formats without a decoder in registers. `WIDE` where bytes may be more than 127.
pub(crate) struct AsPanel<const WIDE: bool>;

impl<const WIDE: bool, const S: usize, const G: usize> Units<256, S, G> for AsPanel<WIDE> {
    const MOST: u8 = if WIDE { 255 } else { 127 };

    fn unit(values: &[u8; 256], scales: &[u8; S], out: &mut Unit<G>) {
        out.values = *values;
        let numbers = scales.as_chunks().0.iter().map(|number| f32::from_le_bytes(*number));
        out.scales.iter_mut().chain(&mut out.mins).zip(numbers).for_each(|(out, number)| *out = number);
    }
}

impl<const WIDE: bool, const S: usize, const G: usize> Registers<256, S, G> for AsPanel<WIDE> {
    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn scales(_: &[u8; 256], scales: &[u8; S]) -> Scales {
        let at = |index: usize| _mm256_castsi256_ps(load32(blocks::at::<32>(scales, index * 32)));
        if G == 16 { Scales { s: [at(0), at(1)], m: [at(2), at(3)] } } else { Scales { s: [at(0); 2], m: [at(1); 2] } }
    }

    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn codes(values: &[u8; 256]) -> [__m256i; 8] {
        let mut u = [_mm256_setzero_si256(); 8];
        u.iter_mut().zip(values.as_chunks().0).for_each(|(u, bytes)| *u = load32::<u8>(bytes));
        u
    }
}
