//! `tq1_0`: -1, 0 or 1, five in a byte; 256 a block with a scale: `w = d * (q - 1)`. ggml's type 34.
//!
//! ```text
//! byte 0..31     byte i has columns i, 32+i, 64+i, 96+i, 128+i
//! byte 32..47    byte 32+i has columns 160+i, 176+i, 192+i, 208+i, 224+i
//! byte 48..51    byte 48+i has columns 240+i, 244+i, 248+i, 252+i
//! byte 52..53    d (binary16, little-endian)
//! ```
//!
//! A byte is a fraction of 256 whose digits of base 3 are the q of its columns, the first column the first digit:
//! `q[n] = (byte * 3^n mod 256) * 3 / 256`, rounded down. One product in f32, as in the reference (gguf `TQ1_0`): equal bits.

mod panel;

use super::{Entry, blocks};

const COLS: usize = 256;
const BYTES: usize = 32 + 16 + 4 + 2;

const _: () = assert!(BYTES == 54 && COLS == 5 * 32 + 5 * 16 + 4 * 4);

pub(super) static ENTRY: Entry = Entry::plain("tq1_0", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let d = blocks::half(bytes, 52);
    let (first, rest) = out.split_at_mut(160);
    let (second, third) = rest.split_at_mut(80);
    for (bytes, out) in [(&bytes[..32], first), (&bytes[32..48], second), (&bytes[48..52], third)] {
        for (digit, out) in out.chunks_exact_mut(bytes.len()).enumerate() {
            let power = [1u8, 3, 9, 27, 81][digit];
            for (out, byte) in out.iter_mut().zip(bytes) {
                let code = (u16::from(byte.wrapping_mul(power)) * 3) >> 8;
                *out = d * (f32::from(code) - 1.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::TQ1_0]);
    }
}
