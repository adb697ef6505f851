//! `q4_0`: four bits, a scale for every 32 numbers: `w = d * (q - 8)`. ggml's type 2.
//!
//! ```text
//! byte 0..1     d (binary16, little-endian)
//! byte 2..17    byte 2+i has q[16+i] in bits 7..4, q[i] in bits 3..0
//! ```
//!
//! One product in f32, as in the reference (gguf `Q4_0`): equal bits.

#[cfg(target_arch = "x86_64")]
mod fast;
mod panel;

use super::{Entry, blocks};

const COLS: usize = 32;
const BYTES: usize = 2 + COLS / 2;

const _: () = assert!(BYTES == 18);

pub(super) static ENTRY: Entry = Entry::plain("q4_0", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let d = blocks::half(bytes, 0);
    blocks::halves(&bytes[2..], out, |_, code| d * (f32::from(code) - 8.0));
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::Q4_0]);
    }
}
