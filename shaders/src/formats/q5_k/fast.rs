//! `q5_k` in registers.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::fast::gemv::registers::{self, Registers, Scales};
use crate::formats::{blocks, kquant};

use super::BYTES;
use super::panel::Q5K;

impl Registers<BYTES, 0, 8> for Q5K {
    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn scales(bytes: &[u8; BYTES], _: &[u8; 0]) -> Scales {
        kquant::scales_mins_avx2(blocks::at(bytes, 0))
    }

    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn codes(bytes: &[u8; BYTES]) -> [__m256i; 8] {
        let (low, bit) = (_mm256_set1_epi8(15), _mm256_set1_epi8(16));
        let high = registers::load32(blocks::at::<32>(bytes, 16));
        let join = |code: __m256i, high: __m256i| _mm256_or_si256(_mm256_and_si256(code, low), _mm256_and_si256(high, bit));
        let pair = |pair: usize| registers::load32(blocks::at::<32>(bytes, 48 + pair * 32));
        let upper = |both: __m256i| _mm256_srli_epi16::<4>(both);
        [
            join(pair(0), _mm256_slli_epi16::<4>(high)),
            join(upper(pair(0)), _mm256_slli_epi16::<3>(high)),
            join(pair(1), _mm256_slli_epi16::<2>(high)),
            join(upper(pair(1)), _mm256_slli_epi16::<1>(high)),
            join(pair(2), high),
            join(upper(pair(2)), _mm256_srli_epi16::<1>(high)),
            join(pair(3), _mm256_srli_epi16::<2>(high)),
            join(upper(pair(3)), _mm256_srli_epi16::<3>(high)),
        ]
    }
}
