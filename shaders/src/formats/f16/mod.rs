//! `f16`: two bytes a number, little-endian, IEEE 754 binary16; every value is exact in f32.
//!
//! ```text
//! byte   0         1
//!        m7..m0    s e4..e0 m9 m8
//! ```

use super::Entry;

pub(super) static ENTRY: Entry =
    Entry { encode: Some(encode), ..Entry::plain("f16", include_str!("decode.glsl"), |cols| cols.checked_mul(2), decode) };

fn decode(bytes: &[u8], _: &[u8], out: &mut [f32]) {
    for (number, value) in bytes.as_chunks::<2>().0.iter().zip(out) {
        *value = half::f16::from_le_bytes(*number).to_f32();
    }
}

/// To the nearest, ties to even; numbers beyond the format's range become infinite.
fn encode(row: &[f32], values: &mut [u8], _: &mut [u8]) {
    let (chunks, _) = values.as_chunks_mut::<2>();
    chunks.iter_mut().zip(row).for_each(|(bytes, number)| *bytes = half::f16::from_f32(*number).to_le_bytes());
}

#[cfg(test)]
mod tests {
    /// Known values from the standard's definition: zeros, the smallest subnormal, one, the largest number, infinity.
    #[test]
    fn known_codes_decode() {
        let cases = [
            (0x0000, 0.0),
            (0x8000, -0.0),
            (0x0001, 2f32.powi(-24)),
            (0x03ff, 1023.0 * 2f32.powi(-24)),
            (0x0400, 2f32.powi(-14)),
            (0x3c00, 1.0),
            (0xc100, -2.5),
            (0x7bff, 65504.0),
            (0xfc00, f32::NEG_INFINITY),
        ];
        for (code, expected) in cases {
            let mut out = [9.0f32];
            super::decode(&u16::to_le_bytes(code), &[], &mut out);
            assert_eq!(out[0].to_bits(), f32::to_bits(expected), "{code:#06x}");
        }
    }
}
