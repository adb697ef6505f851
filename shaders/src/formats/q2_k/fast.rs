//! `q2_k` in registers.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::fast::gemv::registers::{self, Registers, Scales};
use crate::formats::{blocks, kquant};

use super::BYTES;
use super::panel::Q2K;

impl Registers<BYTES, 0, 16> for Q2K {
    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn scales(bytes: &[u8; BYTES], _: &[u8; 0]) -> Scales {
        let codes = registers::load16(blocks::at(bytes, 0));
        let (d, dmin) = (registers::half(bytes, 80), registers::half(bytes, 82));
        let numbers = |codes: __m128i| {
            let codes = _mm_and_si128(codes, _mm_set1_epi8(15));
            [codes, _mm_unpackhi_epi64(codes, codes)].map(|codes| _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(codes)))
        };
        let (s, m) = (numbers(codes), numbers(_mm_srli_epi16::<4>(codes)));
        Scales { s: [_mm256_mul_ps(d, s[0]), _mm256_mul_ps(d, s[1])], m: [_mm256_mul_ps(dmin, m[0]), _mm256_mul_ps(dmin, m[1])] }
    }

    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn codes(bytes: &[u8; BYTES]) -> [__m256i; 8] {
        kquant::codes_of_two_avx2(blocks::at(bytes, 16))
    }
}
