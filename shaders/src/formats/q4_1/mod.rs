//! `q4_1`: four bits, scale and minimum for every 32 numbers: `w = d * q + m`. ggml's type 3.
//!
//! ```text
//! byte 0..1     d (binary16, little-endian)
//! byte 2..3     m (binary16, little-endian)
//! byte 4..19    byte 4+i has q[16+i] in bits 7..4, q[i] in bits 3..0
//! ```
//!
//! Product and sum in f32, as in the reference (gguf `Q4_1`): equal bits.

mod panel;

use super::{Entry, blocks};

const COLS: usize = 32;
const BYTES: usize = 2 + 2 + COLS / 2;

const _: () = assert!(BYTES == 20);

pub(super) static ENTRY: Entry = Entry::plain("q4_1", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let (d, m) = (blocks::half(bytes, 0), blocks::half(bytes, 2));
    blocks::halves(&bytes[4..], out, |_, code| d * f32::from(code) + m);
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::Q4_1]);
    }
}
