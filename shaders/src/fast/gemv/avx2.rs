//! Kernels for single tokens with AVX2: see [`super::driver`].
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::ops::Range;

use super::driver::{AHEAD, Act, BATCH, Place, STRIP, Strip, TOGETHER, kernels};
use super::registers::{Registers, eight, load32, store};
use crate::fast::panel::Row;
use crate::fast::{Acts, Level};
use crate::formats::WeightView;

kernels!(Level::Avx2, "avx2,fma,f16c");

/// Sums of four products each; `WIDE` where bytes may be more than 127.
///
/// Two products of bytes up to 127 are at most 2 * 127 * 127 = 32258, and fit in 16 bits. A wider byte is its highest bit and the others,
/// and two products with 128 are at most 2 * 128 * 127 = 32512.
#[target_feature(enable = "avx2")]
#[inline]
fn dot<const WIDE: bool>(u: __m256i, q: __m256i) -> __m256i {
    let pairs = |u: __m256i| _mm256_madd_epi16(_mm256_maddubs_epi16(u, q), _mm256_set1_epi16(1));
    if !WIDE {
        return pairs(u);
    }
    let high = _mm256_and_si256(u, _mm256_set1_epi8(-128));
    _mm256_add_epi32(pairs(high), pairs(_mm256_xor_si256(u, high)))
}
