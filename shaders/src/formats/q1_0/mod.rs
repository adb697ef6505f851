//! `q1_0`: a sign a number, a scale for every 128 numbers: `w = d` where the bit is set, else `-d`. ggml's type 41.
//!
//! ```text
//! byte 0..1     d (binary16, little-endian)
//! byte 2..17    byte 2+i has the bits of columns 8i+7 .. 8i in bits 7 to 0
//! ```
//!
//! Exact, as in the reference (llama.cpp's `dequantize_row_q1_0`; the package gguf has none): equal bits.

mod panel;

use super::{Entry, blocks};

const COLS: usize = 128;
const BYTES: usize = 2 + COLS / 8;

const _: () = assert!(BYTES == 18);

pub(super) static ENTRY: Entry = Entry::plain("q1_0", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let d = blocks::half(bytes, 0);
    for (at, out) in out.iter_mut().enumerate() {
        *out = if bytes[2 + at / 8] >> (at % 8) & 1 == 1 { d } else { -d };
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::Q1_0]);
    }
}
