//! Decodes `fp8` without its table, in plain Rust that compiles to the instructions of a level.
#![allow(unsafe_code)]

use crate::fast::Level;
use crate::formats::scales::Scale;

/// As the parent's `decode`, to the same bits.
pub(super) fn decode<S: Scale, const COLS: usize>(level: Level, values: &[u8], scales: &[u8], out: &mut [f32]) {
    assert!(level.is_here(), "{level:?} is not here");
    match level {
        Level::Portable => super::decode::<S, COLS>(values, scales, out),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is here.
        Level::Avx2 | Level::Avx512 => unsafe { avx2::<S, COLS>(values, scales, out) },
        #[cfg(not(target_arch = "x86_64"))]
        Level::Avx2 | Level::Avx512 => super::decode::<S, COLS>(values, scales, out),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn avx2<S: Scale, const COLS: usize>(values: &[u8], scales: &[u8], out: &mut [f32]) {
    for ((out, values), scale) in out.chunks_mut(COLS).zip(values.chunks(COLS)).zip(S::numbers(scales)) {
        out.iter_mut().zip(values).for_each(|(out, code)| *out = number(*code) * scale);
    }
}

/// The number of a code: exponents differ by 120, and subnormals are those of f32 times as much.
#[inline(always)]
fn number(code: u8) -> f32 {
    let rest = u32::from(code & 127);
    let finite = f32::from_bits(rest << 20) * f32::from_bits((127 + 120) << 23);
    let bits = if rest == 127 { f32::NAN.to_bits() } else { finite.to_bits() };
    f32::from_bits(bits | u32::from(code >> 7) << 31)
}
