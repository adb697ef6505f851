//! Rows side by side: from sixteen rows of words to units of a word of each row.

#![allow(unsafe_code)]

use super::Level;
use super::gemm::{STRIP, Unit};

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// A level that the machine has, which was found out once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Here(Level);

impl Here {
    /// # Panics
    /// When the machine lacks the level.
    pub fn new(level: Level) -> Self {
        assert!(level.is_here(), "{} on this machine", level.name());
        Self(level)
    }

    pub fn level(self) -> Level {
        self.0
    }
}

// SAFETY: all bits are words.
unsafe impl bytemuck::Zeroable for Unit {}

// SAFETY: sixteen words in C's layout, 64 bytes on a boundary of 64: no padding.
unsafe impl bytemuck::Pod for Unit {}

/// `units[i]` becomes word `i` of each of sixteen rows, which begin `pitch` words apart.
///
/// # Panics
/// When a row lacks words.
pub(super) fn interleave(here: Here, words: &[u32], pitch: usize, units: &mut [Unit]) {
    assert!(units.is_empty() || (STRIP - 1) * pitch + units.len() <= words.len(), "words of a strip");
    let done = match here.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has the level, and all rows have words for all units.
        Level::Avx512 => unsafe { by_sixteens(words, pitch, units) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has the level, and all rows have words for all units.
        Level::Avx2 => unsafe { by_eights(words, pitch, units) },
        _ => 0,
    };
    for (at, unit) in units.iter_mut().enumerate().skip(done) {
        unit.0.iter_mut().enumerate().for_each(|(row, to)| *to = words[row * pitch + at]);
    }
}

/// Sixteen words of every row at a time; says how many words of a row it did.
///
/// # Safety
/// Each of the rows has a word for each unit.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn by_sixteens(words: &[u32], pitch: usize, units: &mut [Unit]) -> usize {
    let (blocks, _) = units.as_chunks_mut::<16>();
    for (at, block) in blocks.iter_mut().enumerate() {
        let mut of = [_mm512_setzero_si512(); 16];
        for (row, of) in of.iter_mut().enumerate() {
            let from = words.as_ptr().wrapping_add(row * pitch + at * 16);
            // SAFETY: the row has these sixteen words: the caller's promise.
            *of = unsafe { _mm512_loadu_si512(from.cast()) };
        }
        for (unit, words) in block.iter_mut().zip(transpose_16(of)) {
            // SAFETY: a unit is sixteen words on a boundary of 64 bytes.
            unsafe { _mm512_store_si512(unit.0.as_mut_ptr().cast(), words) };
        }
    }
    blocks.len() * 16
}

/// Turns a square of words. Pairs of rows are joined first, then fours, so that each quarter of a register holds a column of four rows;
/// then the quarters move.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn transpose_16(r: [__m512i; 16]) -> [__m512i; 16] {
    let zero = _mm512_setzero_si512();
    let (mut fours, mut out) = ([zero; 16], [zero; 16]);
    for i in (0..16).step_by(4) {
        let (a, b) = (_mm512_unpacklo_epi32(r[i], r[i + 1]), _mm512_unpackhi_epi32(r[i], r[i + 1]));
        let (c, d) = (_mm512_unpacklo_epi32(r[i + 2], r[i + 3]), _mm512_unpackhi_epi32(r[i + 2], r[i + 3]));
        (fours[i], fours[i + 1]) = (_mm512_unpacklo_epi64(a, c), _mm512_unpackhi_epi64(a, c));
        (fours[i + 2], fours[i + 3]) = (_mm512_unpacklo_epi64(b, d), _mm512_unpackhi_epi64(b, d));
    }
    for j in 0..4 {
        let (a, c) = (_mm512_shuffle_i32x4(fours[j], fours[4 + j], 0x88), _mm512_shuffle_i32x4(fours[8 + j], fours[12 + j], 0x88));
        let (b, d) = (_mm512_shuffle_i32x4(fours[j], fours[4 + j], 0xdd), _mm512_shuffle_i32x4(fours[8 + j], fours[12 + j], 0xdd));
        (out[j], out[8 + j]) = (_mm512_shuffle_i32x4(a, c, 0x88), _mm512_shuffle_i32x4(a, c, 0xdd));
        (out[4 + j], out[12 + j]) = (_mm512_shuffle_i32x4(b, d, 0x88), _mm512_shuffle_i32x4(b, d, 0xdd));
    }
    out
}

/// Eight words of every row at a time, half of the rows after the other; says how many words of a row it did.
///
/// # Safety
/// Each of the rows has a word for each unit.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn by_eights(words: &[u32], pitch: usize, units: &mut [Unit]) -> usize {
    let (blocks, _) = units.as_chunks_mut::<8>();
    for (at, block) in blocks.iter_mut().enumerate() {
        for half in [0, 8] {
            let mut of = [_mm256_setzero_si256(); 8];
            for (row, of) in of.iter_mut().enumerate() {
                let from = words.as_ptr().wrapping_add((half + row) * pitch + at * 8);
                // SAFETY: the row has these eight words: the caller's promise.
                *of = unsafe { _mm256_loadu_si256(from.cast()) };
            }
            for (unit, words) in block.iter_mut().zip(transpose_8(of)) {
                let to = &mut unit.0[half..][..8];
                // SAFETY: eight words, which is what is written.
                unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), words) };
            }
        }
    }
    blocks.len() * 8
}

/// Turns a square of words, as [`transpose_16`] does.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn transpose_8(r: [__m256i; 8]) -> [__m256i; 8] {
    let zero = _mm256_setzero_si256();
    let (mut fours, mut out) = ([zero; 8], [zero; 8]);
    for i in [0, 4] {
        let (a, b) = (_mm256_unpacklo_epi32(r[i], r[i + 1]), _mm256_unpackhi_epi32(r[i], r[i + 1]));
        let (c, d) = (_mm256_unpacklo_epi32(r[i + 2], r[i + 3]), _mm256_unpackhi_epi32(r[i + 2], r[i + 3]));
        (fours[i], fours[i + 1]) = (_mm256_unpacklo_epi64(a, c), _mm256_unpackhi_epi64(a, c));
        (fours[i + 2], fours[i + 3]) = (_mm256_unpacklo_epi64(b, d), _mm256_unpackhi_epi64(b, d));
    }
    for j in 0..4 {
        out[j] = _mm256_permute2x128_si256(fours[j], fours[4 + j], 0x20);
        out[4 + j] = _mm256_permute2x128_si256(fours[j], fours[4 + j], 0x31);
    }
    out
}
