//! `bf16`: two bytes a number, little-endian; the upper half of a binary32, so that every value is exact in f32.
//!
//! ```text
//! byte   0         1
//!        e0m6..m0  s e7..e1
//! ```

use super::Entry;

pub(super) static ENTRY: Entry =
    Entry { encode: Some(encode), ..Entry::plain("bf16", include_str!("decode.glsl"), |cols| cols.checked_mul(2), decode) };

fn decode(bytes: &[u8], _: &[u8], out: &mut [f32]) {
    for (number, value) in bytes.as_chunks::<2>().0.iter().zip(out) {
        *value = f32::from_bits(u32::from(u16::from_le_bytes(*number)) << 16);
    }
}

/// To the nearest, ties to even.
fn encode(row: &[f32], values: &mut [u8], _: &mut [u8]) {
    let (chunks, _) = values.as_chunks_mut::<2>();
    chunks.iter_mut().zip(row).for_each(|(bytes, number)| *bytes = half::bf16::from_f32(*number).to_le_bytes());
}

#[cfg(test)]
mod tests {
    /// All codes, against the `half` crate.
    #[test]
    fn every_code_decodes_as_the_half_crate_says() {
        let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let mut out = vec![0.0; 65536];
        super::decode(&bytes, &[], &mut out);
        for (code, value) in (0..=u16::MAX).zip(out) {
            let expected = half::bf16::from_bits(code).to_f32();
            assert!(value == expected || (value.is_nan() && expected.is_nan()), "{code:#06x}: {value} is not {expected}");
            assert_eq!(value.is_sign_negative(), expected.is_sign_negative(), "{code:#06x}");
        }
    }
}
