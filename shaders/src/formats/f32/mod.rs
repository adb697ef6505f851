//! `f32`: four bytes a number, little-endian.
//!
//! ```text
//! byte   0        1        2        3
//!        m7..m0   m15..m8  e0m22..  s e7..e1     IEEE 754 binary32
//! ```

use super::Entry;

pub(super) static ENTRY: Entry =
    Entry { encode: Some(encode), ..Entry::plain("f32", include_str!("decode.glsl"), |cols| cols.checked_mul(4), decode) };

fn decode(bytes: &[u8], _: &[u8], out: &mut [f32]) {
    for (number, value) in bytes.as_chunks::<4>().0.iter().zip(out) {
        *value = f32::from_le_bytes(*number);
    }
}

fn encode(row: &[f32], values: &mut [u8], _: &mut [u8]) {
    let (chunks, _) = values.as_chunks_mut::<4>();
    chunks.iter_mut().zip(row).for_each(|(bytes, number)| *bytes = number.to_le_bytes());
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_pass_unchanged() {
        let numbers = [0.0f32, -0.0, 1.0, -1.5, f32::MIN_POSITIVE / 2.0, f32::MAX, f32::INFINITY];
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let mut out = [9.0; 7];
        super::decode(&bytes, &[], &mut out);
        assert_eq!(out.map(f32::to_bits), numbers.map(f32::to_bits));
    }
}
