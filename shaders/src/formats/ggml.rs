//! ggml's block formats, and the numbers that GGUF files give to types.
//!
//! Their blocks hold scales and codes, so they have no rows of scales.

use super::Format;
use super::{
    iq1_m, iq1_s, iq2_s, iq2_xs, iq2_xxs, iq3_s, iq3_xxs, iq4_nl, iq4_xs, mxfp4_ggml, nvfp4, q1_0, q2_0, q2_k, q3_k, q4_0, q4_1, q4_k,
    q5_0, q5_1, q5_k, q6_k, q8_0, tq1_0, tq2_0,
};

/// ggml's block formats.
impl Format {
    /// Four bits, a scale for every 32.
    pub const Q4_0: Self = Self(&q4_0::ENTRY);
    /// Four bits, scale and minimum for every 32.
    pub const Q4_1: Self = Self(&q4_1::ENTRY);
    /// Five bits, a scale for every 32.
    pub const Q5_0: Self = Self(&q5_0::ENTRY);
    /// Five bits, scale and minimum for every 32.
    pub const Q5_1: Self = Self(&q5_1::ENTRY);
    /// Signed bytes, a scale for every 32.
    pub const Q8_0: Self = Self(&q8_0::ENTRY);
    /// Two bits, scale and minimum for every 16.
    pub const Q2_K: Self = Self(&q2_k::ENTRY);
    /// Three bits, a scale for every 16.
    pub const Q3_K: Self = Self(&q3_k::ENTRY);
    /// Four bits, scale and minimum for every 32.
    pub const Q4_K: Self = Self(&q4_k::ENTRY);
    /// Five bits, scale and minimum for every 32.
    pub const Q5_K: Self = Self(&q5_k::ENTRY);
    /// Six bits, a scale for every 16.
    pub const Q6_K: Self = Self(&q6_k::ENTRY);
    /// Eight numbers from a grid of 256, a scale for every 32.
    pub const IQ2_XXS: Self = Self(&iq2_xxs::ENTRY);
    /// Eight numbers from a grid of 512, a scale for every 16.
    pub const IQ2_XS: Self = Self(&iq2_xs::ENTRY);
    /// Four numbers from a grid of 256, a scale for every 32.
    pub const IQ3_XXS: Self = Self(&iq3_xxs::ENTRY);
    /// Eight numbers from a grid of 2048, scale and shift for every 32.
    pub const IQ1_S: Self = Self(&iq1_s::ENTRY);
    /// Four bits that choose a number, a scale for every 32.
    pub const IQ4_NL: Self = Self(&iq4_nl::ENTRY);
    /// Four numbers from a grid of 512, a scale for every 32.
    pub const IQ3_S: Self = Self(&iq3_s::ENTRY);
    /// Eight numbers from a grid of 1024, a scale for every 16.
    pub const IQ2_S: Self = Self(&iq2_s::ENTRY);
    /// Four bits that choose a number, a scale for every 32 and one for 256.
    pub const IQ4_XS: Self = Self(&iq4_xs::ENTRY);
    /// Eight numbers from a grid of 2048 with a shift, a scale for every 16.
    pub const IQ1_M: Self = Self(&iq1_m::ENTRY);
    /// Five of three values in a byte, a scale for every 256.
    pub const TQ1_0: Self = Self(&tq1_0::ENTRY);
    /// Two bits, a scale for every 256.
    pub const TQ2_0: Self = Self(&tq2_0::ENTRY);
    /// Four-bit floats in blocks, a power of two for every 32.
    pub const MXFP4_GGML: Self = Self(&mxfp4_ggml::ENTRY);
    /// Four-bit floats in blocks, a scale for every 16.
    pub const NVFP4: Self = Self(&nvfp4::ENTRY);
    /// A sign a number, a scale for every 128.
    pub const Q1_0: Self = Self(&q1_0::ENTRY);
    /// Two bits, a scale for every 64.
    pub const Q2_0: Self = Self(&q2_0::ENTRY);

    /// The format of a type of GGUF's; `None` for a type that is not one of weights, or is not known.
    pub fn of_ggml(type_id: u32) -> Option<Self> {
        TYPES.iter().find(|(id, _)| *id == type_id).map(|(_, format)| *format)
    }

    /// The type that GGUF files give to this format.
    pub fn ggml_id(self) -> Option<u32> {
        TYPES.iter().find(|(_, format)| *format == self).map(|(id, _)| *id)
    }
}

/// The numbers of `ggml_type` in `ggml.h`, in their order.
const TYPES: &[(u32, Format)] = &[
    (0, Format::F32),
    (1, Format::F16),
    (2, Format::Q4_0),
    (3, Format::Q4_1),
    (6, Format::Q5_0),
    (7, Format::Q5_1),
    (8, Format::Q8_0),
    (10, Format::Q2_K),
    (11, Format::Q3_K),
    (12, Format::Q4_K),
    (13, Format::Q5_K),
    (14, Format::Q6_K),
    (16, Format::IQ2_XXS),
    (17, Format::IQ2_XS),
    (18, Format::IQ3_XXS),
    (19, Format::IQ1_S),
    (20, Format::IQ4_NL),
    (21, Format::IQ3_S),
    (22, Format::IQ2_S),
    (23, Format::IQ4_XS),
    (29, Format::IQ1_M),
    (30, Format::BF16),
    (34, Format::TQ1_0),
    (35, Format::TQ2_0),
    (39, Format::MXFP4_GGML),
    (40, Format::NVFP4),
    (41, Format::Q1_0),
    (42, Format::Q2_0),
];

#[cfg(test)]
mod tests {
    use super::*;
    use coli_plugin_api::serde_json::{Value, from_str};

    /// The package gguf's types and sizes, and llama.cpp's of those that it lacks.
    fn types() -> Vec<Value> {
        from_str(include_str!("ggml.json")).unwrap()
    }

    fn number(entry: &Value, key: &str) -> usize {
        entry[key].as_u64().unwrap() as usize
    }

    #[test]
    fn ids_are_those_of_gguf() {
        let types = types();
        assert_eq!(types.len(), TYPES.len());
        for entry in &types {
            let (format, id) = (Format::by_name(entry["format"].as_str().unwrap()).unwrap(), number(entry, "id") as u32);
            assert_eq!((Format::of_ggml(id), format.ggml_id()), (Some(format), Some(id)));
        }
        for id in (0..100).filter(|id| !types.iter().any(|entry| number(entry, "id") == *id)) {
            assert_eq!(Format::of_ggml(id as u32), None);
        }
        assert_eq!((Format::MXFP4.ggml_id(), Format::of_ggml(u32::MAX)), (None, None));
    }

    #[test]
    fn rows_are_whole_blocks() {
        for entry in types() {
            let format = Format::by_name(entry["format"].as_str().unwrap()).unwrap();
            let (cols, bytes) = (number(&entry, "cols"), number(&entry, "bytes"));
            for width in 0..=2 * cols {
                assert_eq!(format.row_bytes(width), width.is_multiple_of(cols).then(|| width / cols * bytes), "{format:?} of {width}");
            }
            assert_eq!(format.row_bytes(usize::MAX / 256 * 256).is_none(), bytes > cols, "{format:?}");
        }
    }

    /// The generator of `make_ggml_formats.py`.
    fn random_bytes(size: usize) -> Vec<u8> {
        let mut state = 1u32;
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..size).map(next).collect()
    }

    /// FNV-1a of the bits, one number at a time, where every NaN is the same.
    fn hash(numbers: &[f32]) -> String {
        let bits = |number: &f32| if number.is_nan() { 0x7fc0_0000 } else { number.to_bits() };
        let step = |value: u64, bits: u32| (value ^ u64::from(bits)).wrapping_mul(0x0100_0000_01b3);
        format!("{:016x}", numbers.iter().map(bits).fold(0xcbf2_9ce4_8422_2325, step))
    }

    /// Any bytes decode, and to the reference's bits: codes, scales and entries of grids all occur in a thousand blocks.
    #[test]
    fn random_blocks_decode_as_the_reference() {
        for entry in types().iter().filter(|entry| entry.get("hash").is_some()) {
            let format = Format::by_name(entry["format"].as_str().unwrap()).unwrap();
            let blocks = number(entry, "blocks");
            let mut numbers = vec![0.0; blocks * number(entry, "cols")];
            format.decode_row(&random_bytes(blocks * number(entry, "bytes")), &[], &mut numbers);
            assert_eq!(hash(&numbers), entry["hash"].as_str().unwrap(), "{format:?}");
        }
    }
}
