//! `int8-row`, `int8-g64`: a signed byte a number and f32 scales apart, one a row or one for every 64 numbers of a row. `w = q * s`.
//!
//! ```text
//! value byte i   q[i], two's complement        scale bytes 4g..4g+4   s[g], binary32, little-endian
//! ```
//!
//! The last group of `int8-g64` may be short. Decoding rounds once, the product; so does the reference (compressed-tensors' `dequantize`
//! of int8 weights by channel and by group): equal bits.
//!
//! Encoded: `s = absmax / 127`, `q = w / s` rounded half to even; see [`scales::quantize`].

#[cfg(target_arch = "x86_64")]
mod fast;
mod panel;

use super::{Entry, scales};
use crate::fast::panel::Panel;

const fn entry<const GROUP: usize>(name: &'static str, glsl: &'static str, panel: Panel) -> Entry {
    Entry {
        panel: Some(panel),
        scale_bytes: scales::bytes::<scales::F32, GROUP>,
        encode: Some(encode::<GROUP>),
        ..Entry::plain(name, glsl, Some, decode::<GROUP>)
    }
}

pub(super) static ROW: Entry =
    entry::<{ scales::ROW }>("int8-row", concat!("#define FMT_GROUP 0\n", include_str!("decode.glsl")), panel::ROW);
pub(super) static G64: Entry = entry::<64>("int8-g64", concat!("#define FMT_GROUP 64\n", include_str!("decode.glsl")), panel::G64);

fn decode<const GROUP: usize>(values: &[u8], scales: &[u8], out: &mut [f32]) {
    for (number, value) in out.iter_mut().zip(values) {
        *number = f32::from(*value as i8);
    }
    scales::apply::<scales::F32, GROUP>(scales, out);
}

fn encode<const GROUP: usize>(row: &[f32], values: &mut [u8], scales: &mut [u8]) {
    scales::quantize::<GROUP>(row, 127, scales, |at, whole| values[at] = whole as u8);
}

#[cfg(test)]
mod tests {
    use crate::formats::{Format, cases};

    #[test]
    fn decodes_as_the_reference() {
        cases::check(include_str!("cases.json"), &[Format::INT8_ROW, Format::INT8_G64]);
    }

    #[test]
    fn what_is_encoded_stays() {
        [Format::INT8_ROW, Format::INT8_G64].into_iter().for_each(cases::check_encoder);
    }
}
