//! `q5_1`: five bits, scale and minimum for every 32 numbers: `w = d * q + m`. ggml's type 7.
//!
//! ```text
//! byte 0..1     d (binary16, little-endian)
//! byte 2..3     m (binary16, little-endian)
//! byte 4..7     bit 4 of q[31], q[30] .. q[0] in bits 31 to 0 (little-endian)
//! byte 8..23    byte 8+i has bits 3..0 of q[16+i] in bits 7..4, of q[i] in bits 3..0
//! ```
//!
//! Product and sum in f32, as in the reference (gguf `Q5_1`): equal bits.

mod panel;

use super::{Entry, blocks};

const COLS: usize = 32;
const BYTES: usize = 2 + 2 + COLS / 8 + COLS / 2;

const _: () = assert!(BYTES == 24);

pub(super) static ENTRY: Entry = Entry::plain("q5_1", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let (d, m, high) = (blocks::half(bytes, 0), blocks::half(bytes, 2), blocks::quad(bytes, 4));
    blocks::halves(&bytes[8..], out, |at, code| d * f32::from(blocks::fifth(code, high, at)) + m);
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::Q5_1]);
    }
}
