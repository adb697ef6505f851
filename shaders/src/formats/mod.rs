//! Weight formats: how stored bytes become numbers. A recording never names one; a format comes with the stored tensor.
//!
//! A matrix is its values, row after row, then its scales, where a format keeps them apart: one row of scales for every `scale_rows` rows
//! of values. So a row's bytes are found by arithmetic and decoded alone. Formats that keep their scales inside blocks have no scale rows.
//!
//! One format, one folder: a byte diagram, sizes, decoder, cases. Its [`Format`] constants stand in [`Format::ALL`].

mod bf16;
pub(crate) mod blocks;
#[cfg(test)]
mod cases;
mod f16;
mod f32;
mod fp4;
mod fp8;
mod ggml;
mod glsl;
mod infer;
mod int3;
mod int4;
mod int8;
mod iq;
mod iq1_m;
mod iq1_s;
mod iq2_s;
mod iq2_xs;
mod iq2_xxs;
mod iq3_s;
mod iq3_xxs;
mod iq4_nl;
mod iq4_xs;
mod iq_tables;
mod kquant;
mod mxfp4;
mod mxfp4_ggml;
mod nvfp4;
mod q1_0;
mod q2_0;
mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;
mod scales;
mod tq1_0;
mod tq2_0;
mod view;

use crate::fast::Level;
use crate::fast::panel::Panel;

pub use infer::infer;
pub use view::WeightView;

/// A format of stored weights. Two are equal when they have one name.
#[derive(Clone, Copy)]
pub struct Format(&'static Entry);

/// From a row of finite numbers to its values and its scales.
type Encode = fn(&[f32], &mut [u8], &mut [u8]);

/// What a format's folder provides.
pub struct Entry {
    /// Its name, as `coli` prints it and containers of our own state it.
    pub(crate) name: &'static str,
    /// Bytes of the values of a row of so many numbers; `None` where the format cannot store such a row, or the size overflows.
    pub(crate) row_bytes: fn(usize) -> Option<usize>,
    /// Bytes of a row of scales, likewise.
    pub(crate) scale_bytes: fn(usize) -> Option<usize>,
    /// Rows of values that share a row of scales.
    pub(crate) scale_rows: usize,
    /// Decodes the values of a row, with its row of scales.
    pub(crate) decode: fn(&[u8], &[u8], &mut [f32]),
    /// Encodes a row of finite numbers, where the format is one that we write: values, then scales.
    pub(crate) encode: Option<Encode>,
    /// The format of the same values whose scales are repeated for every row, where `scale_rows` is more than 1.
    pub(crate) per_row: Option<&'static Entry>,
    /// Its decoder in GLSL, before what it includes.
    pub(crate) glsl: &'static str,
    /// How it becomes small integers for fast mode; `None` for floats.
    pub(crate) panel: Option<Panel>,
    /// Decodes as `decode` does, to the same bits, with the instructions of a level; `None` where that is no faster.
    pub(crate) decode_at: Option<DecodeAt>,
}

/// From a row's values and its scales to numbers, with the instructions of a level that the machine has.
type DecodeAt = fn(Level, &[u8], &[u8], &mut [f32]);

impl Entry {
    /// A format without rows of scales.
    pub(crate) const fn plain(
        name: &'static str,
        glsl: &'static str,
        row_bytes: fn(usize) -> Option<usize>,
        decode: fn(&[u8], &[u8], &mut [f32]),
    ) -> Self {
        Self {
            name,
            row_bytes,
            scale_bytes: |_| Some(0),
            scale_rows: 1,
            decode,
            encode: None,
            per_row: None,
            glsl,
            panel: None,
            decode_at: None,
        }
    }

    /// With a panel.
    pub(crate) const fn fast(self, panel: Panel) -> Self {
        Self { panel: Some(panel), ..self }
    }
}

impl Format {
    /// IEEE 754 binary32, little-endian.
    pub const F32: Self = Self(&f32::ENTRY);
    /// IEEE 754 binary16, little-endian.
    pub const F16: Self = Self(&f16::ENTRY);
    /// The upper half of a binary32, little-endian.
    pub const BF16: Self = Self(&bf16::ENTRY);

    /// A signed byte a number, an f32 scale a row.
    pub const INT8_ROW: Self = Self(&int8::ROW);
    /// A signed byte a number, an f32 scale for every 64.
    pub const INT8_G64: Self = Self(&int8::G64);
    /// Pairs of four-bit numbers offset by 8, an f32 scale a row.
    pub const INT4_ROW: Self = Self(&int4::ROW);
    /// Pairs of four-bit numbers offset by 8, an f32 scale for every 64.
    pub const INT4_G64: Self = Self(&int4::G64);
    /// Pairs of four-bit numbers in two's complement, an f32 scale a row.
    pub const INT4_ROW_TC: Self = Self(&int4::ROW_TC);
    /// Pairs of four-bit numbers in two's complement, an f32 scale for every 64.
    pub const INT4_G64_TC: Self = Self(&int4::G64_TC);
    /// Four-bit numbers offset by 8, by halves of a group of 64, each with an f32 scale.
    pub const INT4_G64_PLANAR: Self = Self(&int4::G64_PLANAR);
    /// Three-bit numbers in two planes, an f32 scale for every 64.
    pub const INT3_G64: Self = Self(&int3::ENTRY);
    /// Four-bit floats, a power of two for every 32.
    pub const MXFP4: Self = Self(&mxfp4::ENTRY);

    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::F32,
        Self::F16,
        Self::BF16,
        Self::INT8_ROW,
        Self::INT8_G64,
        Self::INT4_ROW,
        Self::INT4_G64,
        Self::INT4_ROW_TC,
        Self::INT4_G64_TC,
        Self::INT4_G64_PLANAR,
        Self::INT3_G64,
        Self::MXFP4,
        Self::FP8_128X128_F32,
        Self::FP8_128X128_BF16,
        Self::FP8_128X128_UE8M0,
        Self::FP8_32X32_F32,
        Self::FP8_32X32_BF16,
        Self::FP8_32X32_UE8M0,
        Self::FP8_1X128_F32,
        Self::FP8_1X128_BF16,
        Self::FP8_1X128_UE8M0,
        Self::FP8_1X32_F32,
        Self::FP8_1X32_BF16,
        Self::FP8_1X32_UE8M0,
        Self::FP8_ROW_F32,
        Self::FP8_ROW_BF16,
        Self::FP8_ROW_UE8M0,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q2_K,
        Self::Q3_K,
        Self::Q4_K,
        Self::Q5_K,
        Self::Q6_K,
        Self::IQ4_NL,
        Self::IQ4_XS,
        Self::MXFP4_GGML,
        Self::NVFP4,
        Self::IQ2_XXS,
        Self::IQ2_XS,
        Self::IQ3_XXS,
        Self::IQ1_S,
        Self::IQ3_S,
        Self::IQ2_S,
        Self::IQ1_M,
        Self::TQ1_0,
        Self::TQ2_0,
        Self::Q1_0,
        Self::Q2_0,
    ];

    /// The format of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// Its name, as `coli` prints it.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Bytes of the values of a row of `cols` numbers; `None` where the format cannot store such a row, or the size overflows.
    pub fn row_bytes(self, cols: usize) -> Option<usize> {
        (self.0.row_bytes)(cols)
    }

    /// Bytes of a row of scales of `cols` numbers; 0 where scales are inside the values.
    pub fn scale_bytes(self, cols: usize) -> Option<usize> {
        (self.0.scale_bytes)(cols)
    }

    /// Rows of values that share a row of scales.
    pub fn scale_rows(self) -> usize {
        self.0.scale_rows
    }

    /// The format of the same values whose scales are repeated for every row; itself where each row has its own.
    ///
    /// A matrix that is cut through the rows that share scales becomes one of this format.
    pub fn with_scales_per_row(self) -> Option<Self> {
        if self.scale_rows() == 1 { Some(self) } else { self.0.per_row.map(Self) }
    }

    /// Bytes of a whole matrix: values, then scales.
    pub fn matrix_bytes(self, rows: usize, cols: usize) -> Option<usize> {
        let values = self.row_bytes(cols)?.checked_mul(rows)?;
        let scales = self.scale_bytes(cols)?.checked_mul(rows.div_ceil(self.scale_rows()))?;
        values.checked_add(scales)
    }

    /// How it becomes small integers for fast mode; `None` for floats.
    pub fn panel(self) -> Option<&'static Panel> {
        self.0.panel.as_ref()
    }

    /// Decodes a row with the instructions of a level, where that is faster.
    pub(crate) fn decoder_at(self) -> Option<DecodeAt> {
        self.0.decode_at
    }

    /// Decodes one row.
    ///
    /// # Panics
    /// When `values` or `scales` are not exactly those of a row of `out.len()` numbers.
    pub fn decode_row(self, values: &[u8], scales: &[u8], out: &mut [f32]) {
        let want = (self.row_bytes(out.len()), self.scale_bytes(out.len()));
        assert_eq!((Some(values.len()), Some(scales.len())), want, "bytes of a {} row of {}", self.name(), out.len());
        (self.0.decode)(values, scales, out);
    }

    /// Whether [`Self::encode_row`] works: a format that we write.
    pub fn is_written(self) -> bool {
        self.0.encode.is_some()
    }

    /// Encodes one row of finite numbers; its values, then its scales. `None` for a format that we do not write, or a row that it cannot
    /// store.
    pub fn encode_row(self, row: &[f32]) -> Option<(Vec<u8>, Vec<u8>)> {
        let encode = self.0.encode?;
        let (mut values, mut scales) = (vec![0; self.row_bytes(row.len())?], vec![0; self.scale_bytes(row.len())?]);
        encode(row, &mut values, &mut scales);
        Some((values, scales))
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Format {}

impl std::hash::Hash for Format {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_words_that_stand_once() {
        let names: HashSet<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        assert_eq!(names.len(), Format::ALL.len());
        for format in Format::ALL {
            assert!(format.name().chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c)), "{format:?}");
            assert_eq!(Format::by_name(format.name()), Some(*format));
        }
        assert_eq!(Format::by_name("F32"), None);
    }

    #[test]
    fn absurd_rows_have_no_size() {
        for format in Format::ALL {
            assert_eq!(format.matrix_bytes(usize::MAX, 256), None, "{format:?}");
            // A byte is fewer than eight numbers in all of them.
            assert_eq!(format.matrix_bytes(8, usize::MAX), None, "{format:?}");
            assert!(format.matrix_bytes(3, 256).is_some_and(|bytes| bytes > 0), "{format:?}");
        }
    }

    /// A row that is encoded and decoded is a row that the format has: encoding it again gives the same bytes.
    #[test]
    fn what_is_written_is_read_back() {
        for format in Format::ALL.iter().filter(|format| format.is_written()) {
            for cols in [1usize, 63, 64, 256, 300] {
                let row: Vec<f32> = (0..cols).map(|i| ((i * 37 % 101) as f32 - 50.0) / 16.0).collect();
                let Some((values, scales)) = format.encode_row(&row) else { continue };
                let mut decoded = vec![0.0; cols];
                format.decode_row(&values, &scales, &mut decoded);
                let worst = row.iter().zip(&decoded).fold(0f32, |worst, (a, b)| worst.max((a - b).abs()));
                assert!(worst <= 3.2 / 7.0, "{format:?}: off by {worst}");
                let mut twice = vec![0.0; cols];
                let (values, scales) = format.encode_row(&decoded).unwrap();
                format.decode_row(&values, &scales, &mut twice);
                assert_eq!(twice, decoded, "{format:?}");
            }
        }
    }
}
