//! `mxfp4`: four-bit floats (e2m1) and a power of two for every 32 numbers of a row apart: `w = v * 2^(s-127)`. Rows are whole groups.
//!
//! ```text
//! value byte k   bits 3..0: column 2k   bits 7..4: column 2k+1      code: sign e1 e0 m      scale byte g   s[g]; 255 is NaN (E8M0)
//! code 0..7      0  0.5  1  1.5  2  3  4  6                         code 8..15: the same, negative
//! ```
//!
//! The layout of compressed-tensors' `mxfp4-pack-quantized` and of DeepSeek's and Kimi's releases. In f32 the product is exact but for
//! overflow: v has two bits, the least scale times the least value is a subnormal 2^-128. The reference multiplies likewise: equal bits.

#[cfg(target_arch = "x86_64")]
mod fast;
mod panel;

use super::{Entry, scales};

const GROUP: usize = 32;
const BLOCK: usize = GROUP / 2;

const _: () = assert!(BLOCK == 16);

/// The numbers of the codes, by OCP MX's definition of E2M1.
const E2M1: [f32; 16] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

pub(super) static ENTRY: Entry = Entry {
    panel: Some(panel::PANEL),
    scale_bytes: |cols| groups(cols, 1),
    ..Entry::plain("mxfp4", include_str!("decode.glsl"), |cols| groups(cols, BLOCK), decode)
};

/// Bytes of a row at so many a group.
fn groups(cols: usize, bytes: usize) -> Option<usize> {
    cols.is_multiple_of(GROUP).then(|| cols / GROUP * bytes)
}

fn decode(values: &[u8], scales: &[u8], out: &mut [f32]) {
    for (pair, byte) in out.as_chunks_mut::<2>().0.iter_mut().zip(values) {
        *pair = [byte & 15, byte >> 4].map(|code| E2M1[usize::from(code)]);
    }
    scales::apply::<scales::Ue8m0, GROUP>(scales, out);
}

#[cfg(test)]
mod tests {
    use crate::formats::{Format, cases};

    #[test]
    fn decodes_as_the_reference() {
        cases::check(include_str!("cases.json"), &[Format::MXFP4]);
    }

    #[test]
    fn rows_are_whole_groups() {
        assert_eq!([0, 32, 64].map(|cols| Format::MXFP4.row_bytes(cols)), [0, 16, 32].map(Some));
        assert_eq!([1, 16, 33, 63].map(|cols| Format::MXFP4.row_bytes(cols)), [None; 4]);
    }
}
