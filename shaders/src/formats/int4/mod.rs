//! Four-bit whole numbers `v` from -8 to 7 and f32 scales apart, one a row or one for every 64 numbers of a row. `w = v * s`.
//!
//! `int4-row`, `int4-g64` store `v + 8`; `int4-row-tc`, `int4-g64-tc` two's complement. Even columns are in low nibbles, and a row of an
//! odd width has an unused high nibble at its end, written as 0:
//!
//! ```text
//! value byte k   bits 3..0: column 2k   bits 7..4: column 2k+1     scale bytes 4g..4g+4   s[g], binary32, little-endian
//! ```
//!
//! `int4-g64-planar` stores `v + 8` by halves of a group. A row is padded to whole groups, with zeros (code 8):
//!
//! ```text
//! value byte 32g+k, k = 0..31   bits 3..0: column 64g+k   bits 7..4: column 64g+k+32
//! ```
//!
//! The last group may be short. Decoding rounds once, the product; so do the references: equal bits.
//!
//! Encoded, two's complement apart: `s = absmax / 7`, `v = w / s` rounded half to even; see [`scales::quantize`].

#[cfg(target_arch = "x86_64")]
mod fast;
mod panel;

use super::{Entry, scales};
use crate::fast::panel::Panel;

mod planar;

pub(super) use planar::ENTRY as G64_PLANAR;

/// The decoder of a variant: columns of a group, 0 for all, and what is added to a number.
macro_rules! glsl {
    ($group:literal, $zero:literal) => {
        concat!("#define FMT_GROUP ", $group, "\n#define FMT_ZERO ", $zero, "\n", include_str!("decode.glsl"))
    };
}

pub(super) static ROW: Entry =
    Entry { encode: Some(encode::<{ scales::ROW }>), ..pairs::<{ scales::ROW }, 8>("int4-row", glsl!(0, 8), panel::ROW) };
pub(super) static G64: Entry = Entry { encode: Some(encode::<64>), ..pairs::<64, 8>("int4-g64", glsl!(64, 8), panel::G64) };
pub(super) static ROW_TC: Entry = pairs::<{ scales::ROW }, 0>("int4-row-tc", glsl!(0, 0), panel::ROW_TC);
pub(super) static G64_TC: Entry = pairs::<64, 0>("int4-g64-tc", glsl!(64, 0), panel::G64_TC);

/// Pairs that store `v + ZERO`, modulo 16.
const fn pairs<const GROUP: usize, const ZERO: u8>(name: &'static str, glsl: &'static str, panel: Panel) -> Entry {
    let row_bytes = |cols: usize| Some(cols.div_ceil(2));
    Entry {
        panel: Some(panel),
        scale_bytes: scales::bytes::<scales::F32, GROUP>,
        ..Entry::plain(name, glsl, row_bytes, decode::<GROUP, ZERO>)
    }
}

/// The number of a code in the low nibble; the high one is ignored.
fn number<const ZERO: u8>(code: u8) -> f32 {
    let twos = code.wrapping_sub(ZERO) << 4;
    f32::from((twos as i8) >> 4)
}

fn decode<const GROUP: usize, const ZERO: u8>(values: &[u8], scales: &[u8], out: &mut [f32]) {
    for (pair, byte) in out.chunks_mut(2).zip(values) {
        let codes = [*byte, byte >> 4];
        pair.iter_mut().zip(codes).for_each(|(value, code)| *value = number::<ZERO>(code));
    }
    scales::apply::<scales::F32, GROUP>(scales, out);
}

fn encode<const GROUP: usize>(row: &[f32], values: &mut [u8], scales: &mut [u8]) {
    values.fill(0);
    scales::quantize::<GROUP>(row, 7, scales, |at, whole| values[at / 2] |= ((whole + 8) as u8) << (at % 2 * 4));
}

#[cfg(test)]
mod tests {
    use crate::formats::{Format, cases};

    const PAIRS: [Format; 4] = [Format::INT4_ROW, Format::INT4_G64, Format::INT4_ROW_TC, Format::INT4_G64_TC];

    #[test]
    fn decodes_as_the_reference() {
        cases::check(include_str!("cases.json"), &[&PAIRS[..], &[Format::INT4_G64_PLANAR]].concat());
    }

    #[test]
    fn what_is_encoded_stays() {
        [Format::INT4_ROW, Format::INT4_G64, Format::INT4_G64_PLANAR].into_iter().for_each(cases::check_encoder);
    }

    /// By hand, from the layout's description: columns 0, 1, 2 are -8, 7, 0.
    #[test]
    fn low_nibbles_are_even_columns() {
        let scale = 0.5f32.to_le_bytes();
        for (format, values) in PAIRS.into_iter().zip([[0xf0, 0x38], [0xf0, 0x38], [0x78, 0x30], [0x78, 0x30]]) {
            let mut out = [9.0; 3];
            format.decode_row(&values, &scale, &mut out);
            assert_eq!(out, [-4.0, 3.5, 0.0], "{format:?}");
        }
    }

    /// By hand: in a row of 65, column 0 is -8, column 32 is 7, column 64 is 1.
    #[test]
    fn planes_are_halves_of_a_group() {
        let mut values = [0x88; 64];
        (values[0], values[32]) = (0xf0, 0x89);
        let scales = [2f32.to_le_bytes(), 4f32.to_le_bytes()].concat();
        let mut out = [9.0; 65];
        Format::INT4_G64_PLANAR.decode_row(&values, &scales, &mut out);
        for (column, number) in out.into_iter().enumerate() {
            let want = [(0, -16.0), (32, 14.0), (64, 4.0)].into_iter().find(|(at, _)| *at == column).map_or(0.0, |(_, want)| want);
            assert_eq!(number, want, "column {column}");
        }
    }

    /// The same numbers and scales as `int4-g64` has, padded with zeros.
    #[test]
    fn planar_rows_are_encoded_as_pairs_are() {
        let row: Vec<f32> = (0..100).map(|at| ((at * 29 % 83) as f32 - 40.0) / 3.0).collect();
        let decoded = [Format::INT4_G64, Format::INT4_G64_PLANAR].map(|format| {
            let (values, scales) = format.encode_row(&row).unwrap();
            let mut out = vec![9.0; row.len()];
            format.decode_row(&values, &scales, &mut out);
            (scales, out)
        });
        assert_eq!(decoded[0], decoded[1]);
        let (values, _) = Format::INT4_G64_PLANAR.encode_row(&row).unwrap();
        assert!(values[32 + 4..].iter().all(|byte| byte >> 4 == 8), "the columns from 100 to 127");
    }
}
