//! What K formats share: where the codes and scales of a group stand in a block of 256.

use crate::fast::panel::Unit;

use super::blocks;
#[cfg(target_arch = "x86_64")]
use crate::fast::gemv::registers::{self, Scales};

/// Scale and minimum of group `group` of 8, six bits each, in twelve bytes:
///
/// ```text
/// byte 0..3     S[g+4] bits 5..4, S[g] (6 bits)       g = byte
/// byte 4..7     M[g+4] bits 5..4, M[g] (6 bits)       g = byte - 4
/// byte 8..11    M[g+4] bits 3..0, S[g+4] bits 3..0    g = byte - 8
/// ```
pub(super) fn scale_min(packed: &[u8], group: usize) -> (f32, f32) {
    let (scale, min) = match group {
        0..4 => (packed[group] & 63, packed[group + 4] & 63),
        _ => {
            let low = packed[group + 4];
            (low & 15 | packed[group - 4] >> 2 & 0x30, low >> 4 | packed[group] >> 2 & 0x30)
        }
    };
    (f32::from(scale), f32::from(min))
}

/// Two-bit codes of the 16 columns of `group`, each with a number made of its place among 32 bytes and the code.
///
/// The lowest bits of 32 bytes are 32 columns, the next bits the next 32; after 128 columns come the next 32 bytes.
pub(super) fn pairs(bytes: &[u8], group: usize, out: &mut [f32], number: impl Fn(usize, u8) -> f32) {
    let (first, shift) = (group % 2 * 16, group % 8 / 2 * 2);
    let bytes = &bytes[group / 8 * 32 + first..][..16];
    out.iter_mut().zip(bytes).enumerate().for_each(|(at, (out, byte))| *out = number(first + at, byte >> shift & 3));
}

/// Two-bit codes of a block, in the order of [`pairs`].
#[inline(always)]
pub(super) fn codes_of_two(bytes: &[u8; 64], out: &mut [u8; 256]) {
    for (bytes, out) in bytes.as_chunks::<32>().0.iter().zip(out.as_chunks_mut::<128>().0) {
        for (quarter, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            out.iter_mut().zip(bytes).for_each(|(out, byte)| *out = byte >> (2 * quarter) & 3);
        }
    }
}

/// Scales and minimums of the 8 groups of a block that begins with `d`, `dmin` and the bytes of [`scale_min`].
#[inline(always)]
pub(super) fn scales_mins(block: &[u8], out: &mut Unit<8>) {
    let (d, dmin) = (blocks::binary16(blocks::word(block, 0)), blocks::binary16(blocks::word(block, 2)));
    for group in 0..8 {
        let (scale, min) = scale_min(&block[4..16], group);
        (out.scales[group], out.mins[group]) = (d * scale, dmin * min);
    }
}

/// The same in registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn scales_mins_avx2(head: &[u8; 16]) -> Scales {
    use std::arch::x86_64::*;
    let head = registers::load16(head);
    // Bytes of the result: S[0..8], M[0..8]. Those of groups 4 to 7 have lower and upper bits in different bytes.
    let low = _mm_shuffle_epi32::<0b11_10_11_01>(head);
    let high = _mm_shuffle_epi32::<0b10_10_01_01>(head);
    let low = _mm_and_si128(_mm_srlv_epi32(low, _mm_setr_epi32(0, 0, 0, 4)), _mm_setr_epi32(SIX, FOUR, SIX, FOUR));
    let high = _mm_and_si128(_mm_srli_epi32::<2>(high), _mm_setr_epi32(0, HIGH, 0, HIGH));
    let codes = _mm_or_si128(low, high);
    let numbers = |codes: __m128i| _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(codes));
    let scales = _mm_cvtph_ps(head);
    let s = _mm256_mul_ps(_mm256_broadcastss_ps(scales), numbers(codes));
    let m = _mm256_mul_ps(_mm256_broadcastss_ps(_mm_movehdup_ps(scales)), numbers(_mm_unpackhi_epi64(codes, codes)));
    Scales { s: [s; 2], m: [m; 2] }
}

/// [`codes_of_two`] in registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn codes_of_two_avx2(bytes: &[u8; 64]) -> [std::arch::x86_64::__m256i; 8] {
    use std::arch::x86_64::*;
    let take = |codes: __m256i| _mm256_and_si256(codes, _mm256_set1_epi8(3));
    let half = |half: usize| registers::load32::<u8>(blocks::at(bytes, half * 32));
    let (a, b) = (half(0), half(1));
    [
        take(a),
        take(_mm256_srli_epi16::<2>(a)),
        take(_mm256_srli_epi16::<4>(a)),
        take(_mm256_srli_epi16::<6>(a)),
        take(b),
        take(_mm256_srli_epi16::<2>(b)),
        take(_mm256_srli_epi16::<4>(b)),
        take(_mm256_srli_epi16::<6>(b)),
    ]
}

/// Six and four bits of each byte.
const SIX: i32 = 0x3f3f_3f3f;
const FOUR: i32 = 0x0f0f_0f0f;
/// Bits 5 and 4.
const HIGH: i32 = 0x3030_3030;
