//! `q4_k` in registers.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::fast::gemv::registers::{self, Registers, Scales};
use crate::formats::{blocks, kquant};

use super::BYTES;
use super::panel::Q4K;

impl Registers<BYTES, 0, 8> for Q4K {
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
        registers::planes(blocks::at(bytes, 16))
    }
}
