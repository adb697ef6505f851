//! `q6_k` in registers.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::fast::gemv::registers::{self, Registers, Scales};
use crate::formats::blocks;

use super::BYTES;
use super::panel::Q6K;

impl Registers<BYTES, 0, 16> for Q6K {
    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn scales(bytes: &[u8; BYTES], _: &[u8; 0]) -> Scales {
        let codes = registers::load16(blocks::at(bytes, 192));
        let d = registers::half(bytes, 208);
        let eight = |codes: __m128i| _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)));
        registers::offset::<16>([eight(codes), eight(_mm_unpackhi_epi64(codes, codes))], 32.0)
    }

    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn codes(bytes: &[u8; BYTES]) -> [__m256i; 8] {
        let (low, high) = (_mm256_set1_epi8(15), _mm256_set1_epi8(0x30));
        let join = |a: __m256i, b: __m256i| _mm256_or_si256(_mm256_and_si256(a, low), _mm256_and_si256(b, high));
        let mut u = [low; 8];
        for half in 0..2 {
            let first = registers::load32(blocks::at::<32>(bytes, half * 64));
            let last = registers::load32(blocks::at::<32>(bytes, half * 64 + 32));
            let pairs = registers::load32(blocks::at::<32>(bytes, 128 + half * 32));
            u[half * 4] = join(first, _mm256_slli_epi16::<4>(pairs));
            u[half * 4 + 1] = join(last, _mm256_slli_epi16::<2>(pairs));
            u[half * 4 + 2] = join(_mm256_srli_epi16::<4>(first), pairs);
            u[half * 4 + 3] = join(_mm256_srli_epi16::<4>(last), _mm256_srli_epi16::<2>(pairs));
        }
        u
    }
}
