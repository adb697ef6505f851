//! `q2_0`: two bits, a scale for every 64 numbers: `w = d * (q - 1)`. ggml's type 42.
//!
//! ```text
//! byte 0..1     d (binary16, little-endian)
//! byte 2..17    byte 2+i has q[4i+3], q[4i+2], q[4i+1], q[4i] in bits 7..6 to 1..0
//! ```
//!
//! One product in f32, as in the reference (llama.cpp's `dequantize_row_q2_0`; the package gguf has none): equal bits.

mod panel;

use super::{Entry, blocks};

const COLS: usize = 64;
const BYTES: usize = 2 + COLS / 4;

const _: () = assert!(BYTES == 18);

pub(super) static ENTRY: Entry = Entry::plain("q2_0", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let d = blocks::half(bytes, 0);
    for (out, byte) in out.as_chunks_mut::<4>().0.iter_mut().zip(&bytes[2..]) {
        *out = [0, 2, 4, 6].map(|shift| d * (f32::from(byte >> shift & 3) - 1.0));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::Q2_0]);
    }
}
