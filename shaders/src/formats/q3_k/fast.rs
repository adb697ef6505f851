//! `q3_k` in registers.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::fast::gemv::registers::{self, Registers, Scales};
use crate::formats::{blocks, kquant};

use super::BYTES;
use super::panel::Q3K;

impl Registers<BYTES, 0, 16> for Q3K {
    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn scales(bytes: &[u8; BYTES], _: &[u8; 0]) -> Scales {
        let packed: &[u8; 12] = blocks::at(bytes, 96);
        let (low, high) =
            (u64::from(blocks::quad(packed, 0)) | u64::from(blocks::quad(packed, 4)) << 32, u64::from(blocks::quad(packed, 8)));
        // Bits 5 and 4 of eight codes: those of four groups are two bits of the same four bytes.
        let upper = |shift: u32| (high >> shift | high >> (shift + 2) << 32) & 0x0303_0303_0303_0303;
        let codes = |low: u64, upper: u64| (low & 0x0f0f_0f0f_0f0f_0f0f | upper << 4).cast_signed();
        let d = registers::half(bytes, 108);
        let s = |codes: i64| {
            let whole = _mm256_sub_epi32(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(codes)), _mm256_set1_epi32(32));
            _mm256_mul_ps(d, _mm256_cvtepi32_ps(whole))
        };
        registers::offset::<16>([s(codes(low, upper(0))), s(codes(low >> 4, upper(4)))], 4.0)
    }

    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn codes(bytes: &[u8; BYTES]) -> [__m256i; 8] {
        let mut u = kquant::codes_of_two_avx2(blocks::at(bytes, 32));
        let high = registers::load32(blocks::at::<32>(bytes, 0));
        // Bit `group` to bit 2.
        let bits = [
            _mm256_slli_epi16::<2>(high),
            _mm256_slli_epi16::<1>(high),
            high,
            _mm256_srli_epi16::<1>(high),
            _mm256_srli_epi16::<2>(high),
            _mm256_srli_epi16::<3>(high),
            _mm256_srli_epi16::<4>(high),
            _mm256_srli_epi16::<5>(high),
        ];
        for (u, bits) in u.iter_mut().zip(bits) {
            *u = _mm256_or_si256(*u, _mm256_and_si256(bits, _mm256_set1_epi8(4)));
        }
        u
    }
}
