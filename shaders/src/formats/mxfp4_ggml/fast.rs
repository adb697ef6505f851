//! `mxfp4-ggml` in registers.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::fast::gemv::registers::{self, Registers, Scales};
use crate::formats::{blocks, fp4};

use super::BYTES;
use super::panel::{Mxfp4Ggml, UNIT};

impl Registers<UNIT, 0, 8> for Mxfp4Ggml {
    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn scales(bytes: &[u8; UNIT], _: &[u8; 0]) -> Scales {
        let codes = u64::from_le_bytes(std::array::from_fn(|block| bytes[block * BYTES]));
        let codes = _mm256_cvtepu8_epi32(_mm_set_epi64x(0, codes.cast_signed()));
        registers::offset::<8>([registers::half_e8m0(codes); 2], 12.0)
    }

    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn codes(bytes: &[u8; UNIT]) -> [__m256i; 8] {
        let table = registers::table(&fp4::U);
        let mut u = [table; 8];
        for (block, u) in u.iter_mut().enumerate() {
            *u = _mm256_shuffle_epi8(table, registers::nibbles(blocks::at(bytes, block * BYTES + 1)));
        }
        u
    }
}
