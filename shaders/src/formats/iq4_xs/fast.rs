//! `iq4_xs` in registers.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::fast::gemv::registers::{self, Registers, Scales};
use crate::formats::{blocks, iq4_nl};

use super::BYTES;
use super::panel::Iq4Xs;

impl Registers<BYTES, 0, 8> for Iq4Xs {
    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn scales(bytes: &[u8; BYTES], _: &[u8; 0]) -> Scales {
        let (d, high) = (registers::half(bytes, 0), u32::from(blocks::word(bytes, 2)));
        let low = blocks::quad(bytes, 4).cast_signed();
        let eight = |codes: i32, shifts: __m256i, mask: i32| {
            _mm256_and_si256(_mm256_srlv_epi32(_mm256_set1_epi32(codes), shifts), _mm256_set1_epi32(mask))
        };
        let low = eight(low, _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28), 15);
        // Two bits each, moved to bits 5 and 4 before they are taken.
        let high = eight((high << 4).cast_signed(), _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14), 0x30);
        let whole = _mm256_sub_epi32(_mm256_or_si256(low, high), _mm256_set1_epi32(32));
        registers::offset::<8>([_mm256_mul_ps(d, _mm256_cvtepi32_ps(whole)); 2], 127.0)
    }

    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn codes(bytes: &[u8; BYTES]) -> [__m256i; 8] {
        let table = registers::table(&iq4_nl::U);
        let mut u = [table; 8];
        for (group, u) in u.iter_mut().enumerate() {
            *u = _mm256_shuffle_epi8(table, registers::nibbles(blocks::at(bytes, 8 + group * 16)));
        }
        u
    }
}
