//! Four-bit whole numbers in registers.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::fast::gemv::registers::{self, Registers, Scales};

use super::panel::{Pairs, Planar};

impl<const S: usize, const ZERO: u8> Registers<128, S, 8> for Pairs<S, ZERO> {
    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn scales(_: &[u8; 128], scales: &[u8; S]) -> Scales {
        registers::offset::<8>([registers::groups(scales); 2], 8.0)
    }

    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn codes(values: &[u8; 128]) -> [__m256i; 8] {
        let mut u = [_mm256_set1_epi8(8 - ZERO.cast_signed()); 8];
        for (u, bytes) in u.iter_mut().zip(values.as_chunks::<16>().0) {
            let codes = registers::pairs(bytes);
            *u = if ZERO == 0 { _mm256_xor_si256(*u, codes) } else { codes };
        }
        u
    }
}

impl Registers<128, 16, 8> for Planar {
    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn scales(_: &[u8; 128], scales: &[u8; 16]) -> Scales {
        registers::offset::<8>([registers::groups(scales); 2], 8.0)
    }

    // SAFETY: the caller promises what the trait asks for: the machine has the instructions.
    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    unsafe fn codes(values: &[u8; 128]) -> [__m256i; 8] {
        registers::planes(values)
    }
}
