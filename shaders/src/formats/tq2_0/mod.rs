//! `tq2_0`: two bits, 256 numbers a block with a scale: `w = d * (q - 1)`. ggml's type 35; made for -1, 0 and 1, but code 3 is 2.
//!
//! ```text
//! byte 0..63     q: 32 bytes for each half h; byte 32h+i has columns 128h+96+i, +64+i, +32+i, +i in bits 7..6 to 1..0
//! byte 64..65    d (binary16, little-endian)
//! ```
//!
//! One product in f32, as in the reference (gguf `TQ2_0`): equal bits.

mod panel;

use super::{Entry, blocks, kquant};

const COLS: usize = 256;
const BYTES: usize = COLS / 4 + 2;

const _: () = assert!(BYTES == 66);

pub(super) static ENTRY: Entry = Entry::plain("tq2_0", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let d = blocks::half(bytes, 64);
    for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        kquant::pairs(&bytes[..64], group, out, |_, code| d * (f32::from(code) - 1.0));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::TQ2_0]);
    }
}
