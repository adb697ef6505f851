//! `iq2_s`: eight numbers from a grid of 1024; 256 a block, groups of 16: `w = (d * (0.5 + S[g]) * 0.25) * G[q] * sign`. ggml's type 22.
//!
//! ```text
//! byte 0..1      d (binary16, little-endian)
//! byte 2..33     bits 7..0 of q, of 8 columns each
//! byte 34..65    signs of 8 columns each, the first in bit 0
//! byte 66..73    byte 66+k has bits 9..8 of q[4k+3], q[4k+2], q[4k+1], q[4k] in bits 7..6 to 1..0
//! byte 74..81    byte 74+k has S[2k+1] in bits 7..4, S[2k] in bits 3..0
//! ```
//!
//! The grid is `iq_tables::IQ2_S`. Products in f32, in the reference's order (gguf `IQ2_S`): equal bits.

mod panel;

use super::iq_tables::IQ2_S;
use super::{Entry, blocks, iq};

const COLS: usize = 256;
const BYTES: usize = 2 + COLS / 8 + COLS / 8 + COLS / 32 + COLS / 32;

const _: () = assert!(BYTES == 82);

pub(super) static ENTRY: Entry = Entry::plain("iq2_s", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let d = blocks::half(bytes, 0);
    for (at, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let high = bytes[66 + at / 4] >> (at % 4 * 2) & 3;
        let scale = d * (0.5 + f32::from(blocks::nibble(&bytes[74..], at / 2))) * 0.25;
        iq::eight(IQ2_S[usize::from(bytes[2 + at]) | usize::from(high) << 8], bytes[34 + at], scale, out);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::IQ2_S]);
    }
}
