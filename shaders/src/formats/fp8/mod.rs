//! `fp8-<block>-<scale>`: eight-bit floats (e4m3fn) and scales apart, one for each block of rows x columns: `w = v * s`.
//!
//! ```text
//! value byte i   column i: s e3..e0 m2..m0    e = 0: m * 2^-9    else (8 + m) * 2^(e-10)    0x7f, 0xff: NaN    no infinities
//! scales         a row of them for every 128, 32 or 1 rows, one for every 128, 32 or all columns; the last block may be short
//!     f32        binary32, little-endian      bf16   its upper half, little-endian      ue8m0   byte s is 2^(s-127), 255 is NaN
//! ```
//!
//! Blocks: `128x128`, `32x32`, `row` (one scale a row); `1x128` and `1x32` repeat the scales for every row, for a matrix that was cut
//! through blocks. The values of e4m3fn are exact in f32, so decoding rounds once, the product in f32; the reference (transformers'
//! `_dequantize_fp8_weight`, dtype float32) likewise: equal bits.

mod fast;

use super::scales::{self, Bf16, F32, Scale, Ue8m0};
use super::{Entry, Format};

/// The number of each code.
static E4M3: [f32; 256] = {
    let mut numbers = [0.0; 256];
    let mut code = 0;
    while code < numbers.len() {
        numbers[code] = e4m3(code as u8);
        code += 1;
    }
    numbers
};

const fn e4m3(code: u8) -> f32 {
    let (sign, exponent, mantissa) = (code as u32 >> 7, code as u32 >> 3 & 15, code as u32 & 7);
    match (exponent, mantissa) {
        (15, 7) => f32::NAN,
        (0, _) => {
            let number = mantissa as f32 / 512.0;
            if sign == 1 { -number } else { number }
        }
        _ => f32::from_bits(sign << 31 | (exponent + 120) << 23 | mantissa << 20),
    }
}

/// The decoder of a variant: columns of a scale, 0 for all, and a scale's bytes.
macro_rules! glsl {
    ($group:literal, $bytes:literal) => {
        concat!("#define FMT_GROUP ", $group, "\n#define FMT_SCALE_BYTES ", $bytes, "\n", include_str!("decode.glsl"))
    };
}

/// Scales of a row of their own for every row, for every `COLS` columns.
const fn rows<S: Scale, const COLS: usize>(name: &'static str, glsl: &'static str) -> Entry {
    Entry {
        scale_bytes: scales::bytes::<S, COLS>,
        decode_at: Some(fast::decode::<S, COLS>),
        ..Entry::plain(name, glsl, Some, decode::<S, COLS>)
    }
}

/// Scales for blocks of `SIDE` rows and columns.
const fn blocks<S: Scale, const SIDE: usize>(name: &'static str, glsl: &'static str, per_row: &'static Entry) -> Entry {
    Entry { scale_rows: SIDE, per_row: Some(per_row), ..rows::<S, SIDE>(name, glsl) }
}

static PER_ROW: [Entry; 9] = [
    rows::<F32, 128>("fp8-1x128-f32", glsl!(128, 4)),
    rows::<Bf16, 128>("fp8-1x128-bf16", glsl!(128, 2)),
    rows::<Ue8m0, 128>("fp8-1x128-ue8m0", glsl!(128, 1)),
    rows::<F32, 32>("fp8-1x32-f32", glsl!(32, 4)),
    rows::<Bf16, 32>("fp8-1x32-bf16", glsl!(32, 2)),
    rows::<Ue8m0, 32>("fp8-1x32-ue8m0", glsl!(32, 1)),
    rows::<F32, { scales::ROW }>("fp8-row-f32", glsl!(0, 4)),
    rows::<Bf16, { scales::ROW }>("fp8-row-bf16", glsl!(0, 2)),
    rows::<Ue8m0, { scales::ROW }>("fp8-row-ue8m0", glsl!(0, 1)),
];

static BLOCKS: [Entry; 6] = [
    blocks::<F32, 128>("fp8-128x128-f32", glsl!(128, 4), &PER_ROW[0]),
    blocks::<Bf16, 128>("fp8-128x128-bf16", glsl!(128, 2), &PER_ROW[1]),
    blocks::<Ue8m0, 128>("fp8-128x128-ue8m0", glsl!(128, 1), &PER_ROW[2]),
    blocks::<F32, 32>("fp8-32x32-f32", glsl!(32, 4), &PER_ROW[3]),
    blocks::<Bf16, 32>("fp8-32x32-bf16", glsl!(32, 2), &PER_ROW[4]),
    blocks::<Ue8m0, 32>("fp8-32x32-ue8m0", glsl!(32, 1), &PER_ROW[5]),
];

/// Named as they are printed.
impl Format {
    /// Blocks of 128 x 128, scales in f32.
    pub const FP8_128X128_F32: Self = Self(&BLOCKS[0]);
    /// Blocks of 128 x 128, scales in bf16.
    pub const FP8_128X128_BF16: Self = Self(&BLOCKS[1]);
    /// Blocks of 128 x 128, scales that are powers of two.
    pub const FP8_128X128_UE8M0: Self = Self(&BLOCKS[2]);
    /// Blocks of 32 x 32, scales in f32.
    pub const FP8_32X32_F32: Self = Self(&BLOCKS[3]);
    /// Blocks of 32 x 32, scales in bf16.
    pub const FP8_32X32_BF16: Self = Self(&BLOCKS[4]);
    /// Blocks of 32 x 32, scales that are powers of two.
    pub const FP8_32X32_UE8M0: Self = Self(&BLOCKS[5]);
    /// An f32 scale for every 128 columns of each row.
    pub const FP8_1X128_F32: Self = Self(&PER_ROW[0]);
    /// A bf16 scale for every 128 columns of each row.
    pub const FP8_1X128_BF16: Self = Self(&PER_ROW[1]);
    /// A power of two for every 128 columns of each row.
    pub const FP8_1X128_UE8M0: Self = Self(&PER_ROW[2]);
    /// An f32 scale for every 32 columns of each row.
    pub const FP8_1X32_F32: Self = Self(&PER_ROW[3]);
    /// A bf16 scale for every 32 columns of each row.
    pub const FP8_1X32_BF16: Self = Self(&PER_ROW[4]);
    /// A power of two for every 32 columns of each row.
    pub const FP8_1X32_UE8M0: Self = Self(&PER_ROW[5]);
    /// An f32 scale a row.
    pub const FP8_ROW_F32: Self = Self(&PER_ROW[6]);
    /// A bf16 scale a row.
    pub const FP8_ROW_BF16: Self = Self(&PER_ROW[7]);
    /// A power of two a row.
    pub const FP8_ROW_UE8M0: Self = Self(&PER_ROW[8]);
}

fn decode<S: Scale, const COLS: usize>(values: &[u8], scales: &[u8], out: &mut [f32]) {
    for (number, code) in out.iter_mut().zip(values) {
        *number = E4M3[usize::from(*code)];
    }
    scales::apply::<S, COLS>(scales, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{WeightView, cases};

    fn all() -> Vec<Format> {
        BLOCKS.iter().chain(&PER_ROW).map(Format).collect()
    }

    #[test]
    fn decodes_as_the_reference() {
        cases::check(include_str!("cases.json"), &all());
    }

    #[test]
    fn all_of_them_are_listed() {
        for format in all() {
            assert_eq!(Format::by_name(format.name()), Some(format));
        }
    }

    /// The standard's own numbers: zeros, the least and the largest subnormal, the least normal, one, the largest.
    #[test]
    fn known_codes_decode() {
        let cases = [(0x00, 0.0), (0x80, -0.0), (0x01, 0.001953125), (0x87, -0.013671875), (0x08, 0.015625), (0x38, 1.0), (0xfe, -448.0)];
        for (code, number) in cases {
            assert_eq!(e4m3(code).to_bits(), f32::to_bits(number), "{code:#04x}");
        }
        assert!(e4m3(0x7f).is_nan() && e4m3(0xff).is_nan());
        assert!((0..=255u8).filter(|code| code & 127 != 127).all(|code| e4m3(code).is_finite()));
    }

    /// A matrix whose scales are repeated for every row decodes to the same numbers.
    #[test]
    fn scales_can_be_repeated_for_every_row() {
        for format in all() {
            let per_row = format.with_scales_per_row().unwrap();
            assert_eq!((per_row.scale_rows(), per_row.scale_bytes(300)), (1, format.scale_bytes(300)), "{format:?}");
            let (rows, cols, side) = (130, 130, format.scale_rows());
            let values: Vec<u8> = (0..rows * cols).map(|at| (at * 7 % 127) as u8).collect();
            let width = format.scale_bytes(cols).unwrap();
            let scales: Vec<u8> = (0..width * rows.div_ceil(side)).map(|at| 60 + (at % 7) as u8).collect();
            let repeated: Vec<u8> = (0..rows).flat_map(|row| scales[row / side * width..][..width].to_vec()).collect();
            let (whole, cut) = ([&values[..], &scales[..]].concat(), [&values[..], &repeated[..]].concat());
            let decoded = WeightView::new(format, rows, cols, &whole).unwrap().decode();
            assert_eq!(WeightView::new(per_row, rows, cols, &cut).unwrap().decode(), decoded, "{format:?}");
        }
    }
}
