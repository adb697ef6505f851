//! `int8-row` and `int8-g64` in registers.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::fast::gemv::registers::{self, Registers, Scales};

use super::panel::Int8;

impl<const S: usize> Registers<256, S, 8> for Int8<S> {
    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn scales(_: &[u8; 256], scales: &[u8; S]) -> Scales {
        registers::offset::<8>([registers::groups(scales); 2], 128.0)
    }

    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn codes(values: &[u8; 256]) -> [__m256i; 8] {
        let mut u = [_mm256_set1_epi8(-128); 8];
        for (u, bytes) in u.iter_mut().zip(values.as_chunks::<32>().0) {
            *u = _mm256_xor_si256(*u, registers::load32(bytes));
        }
        u
    }
}
