//! `mxfp4` in registers.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::fast::gemv::registers::{self, Registers, Scales};
use crate::formats::fp4;

use super::panel::Mxfp4;

impl Registers<128, 8, 8> for Mxfp4 {
    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn scales(_: &[u8; 128], scales: &[u8; 8]) -> Scales {
        let codes = _mm256_cvtepu8_epi32(_mm_set_epi64x(0, i64::from_le_bytes(*scales)));
        let nan = _mm256_castsi256_ps(_mm256_cmpeq_epi32(codes, _mm256_set1_epi32(255)));
        let s = _mm256_blendv_ps(registers::half_e8m0(codes), _mm256_set1_ps(f32::NAN), nan);
        registers::offset::<8>([s; 2], 12.0)
    }

    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn codes(values: &[u8; 128]) -> [__m256i; 8] {
        let table = registers::table(&fp4::U);
        let mut u = [table; 8];
        for (u, bytes) in u.iter_mut().zip(values.as_chunks::<16>().0) {
            *u = _mm256_shuffle_epi8(table, registers::pairs(bytes));
        }
        u
    }
}
