//! `q4_0` in registers.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::fast::gemv::registers::{self, Registers, Scales};
use crate::formats::blocks;

use super::BYTES;
use super::panel::{Q40, UNIT};

impl Registers<UNIT, 0, 8> for Q40 {
    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn scales(bytes: &[u8; UNIT], _: &[u8; 0]) -> Scales {
        registers::offset::<8>([registers::halves_every::<BYTES>(bytes); 2], 8.0)
    }

    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn codes(bytes: &[u8; UNIT]) -> [__m256i; 8] {
        let mut u = [_mm256_setzero_si256(); 8];
        for (block, u) in u.iter_mut().enumerate() {
            *u = registers::nibbles(blocks::at(bytes, block * BYTES + 2));
        }
        u
    }
}
