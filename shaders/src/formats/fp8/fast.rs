//! Decodes `fp8` without its table, eight numbers at a time.
#![allow(unsafe_code)]

use crate::fast::Level;
use crate::formats::scales::Scale;

/// As the parent's `decode`, to the same bits.
pub(super) fn decode<S: Scale, const COLS: usize>(level: Level, values: &[u8], scales: &[u8], out: &mut [f32]) {
    assert!(level.is_here(), "{level:?} is not here");
    match level {
        Level::Portable => super::decode::<S, COLS>(values, scales, out),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is here.
        Level::Avx2 | Level::Avx512 => unsafe { avx2::<S, COLS>(values, scales, out) },
        #[cfg(not(target_arch = "x86_64"))]
        Level::Avx2 | Level::Avx512 => super::decode::<S, COLS>(values, scales, out),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn avx2<S: Scale, const COLS: usize>(values: &[u8], scales: &[u8], out: &mut [f32]) {
    for ((out, values), scale) in out.chunks_mut(COLS).zip(values.chunks(COLS)).zip(S::numbers(scales)) {
        let ((out, out_rest), (codes, codes_rest)) = (out.as_chunks_mut::<8>(), values.as_chunks::<8>());
        for (out, codes) in out.iter_mut().zip(codes) {
            eight(*codes, scale, out);
        }
        for (out, code) in out_rest.iter_mut().zip(codes_rest) {
            *out = super::E4M3[usize::from(*code)] * scale;
        }
    }
}

/// Eight products. Exponents of codes and of f32 differ by 120. A subnormal code is made a number of the least exponent, which is then
/// taken away: as a subnormal f32 it would be slow.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn eight(codes: [u8; 8], scale: f32, out: &mut [f32; 8]) {
    use std::arch::x86_64::*;
    let codes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(i64::from_le_bytes(codes)));
    let rest = _mm256_and_si256(codes, _mm256_set1_epi32(127));
    let sign = _mm256_slli_epi32::<24>(_mm256_xor_si256(codes, rest));
    let small = _mm256_cmpgt_epi32(_mm256_set1_epi32(8), rest);
    let least = _mm256_and_si256(small, _mm256_set1_epi32(121 << 23));
    // Where `small` is -1 its exponent is one more.
    let exponent = _mm256_sub_epi32(_mm256_set1_epi32(120 << 23), _mm256_slli_epi32::<23>(small));
    let bits = _mm256_add_epi32(_mm256_slli_epi32::<20>(rest), exponent);
    let number = _mm256_sub_ps(_mm256_castsi256_ps(bits), _mm256_castsi256_ps(least));
    let nan = _mm256_castsi256_ps(_mm256_cmpeq_epi32(rest, _mm256_set1_epi32(127)));
    let number = _mm256_or_ps(_mm256_or_ps(number, nan), _mm256_castsi256_ps(sign));
    let product = _mm256_mul_ps(number, _mm256_set1_ps(scale));
    // SAFETY: there is room for eight.
    unsafe { _mm256_storeu_ps(out.as_mut_ptr(), product) }
}
