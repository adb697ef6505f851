//! Kernels for single tokens with AVX-512 VNNI: see [`super::driver`].
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::ops::Range;

use super::driver::{AHEAD, Act, BATCH, Place, STRIP, Strip, TOGETHER, kernels};
use super::registers::{Registers, eight, load32, store};
use crate::fast::panel::Row;
use crate::fast::{Acts, Level};
use crate::formats::WeightView;

kernels!(Level::Avx512, "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vnni,avx2,fma,f16c");

/// Sums of four products each.
#[target_feature(enable = "avx512f,avx512vl,avx512vnni")]
#[inline]
fn dot<const WIDE: bool>(u: __m256i, q: __m256i) -> __m256i {
    _mm256_dpbusd_epi32(_mm256_setzero_si256(), u, q)
}
