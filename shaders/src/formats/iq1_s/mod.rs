//! `iq1_s`: eight of -1, 0, 1 from a grid of 2048; 256 a block, groups of 32: `w = (d * (2 * S[g] + 1)) * (G[q] + t[g])`. ggml's type 19.
//!
//! ```text
//! byte 0..1      d (binary16, little-endian)
//! byte 2..33     bits 7..0 of q, of 8 columns each
//! byte 34..49    two bytes for each group (little-endian): bit 15 set: t[g] = -1/8, else 1/8; bits 14..12 S[g];
//!                bits 11..9, 8..6, 5..3, 2..0: bits 10..8 of q[4g+3], q[4g+2], q[4g+1], q[4g]
//! ```
//!
//! The grid is `iq_tables::IQ1`. In f32, in the reference's order (gguf `IQ1_S`): equal bits.

mod panel;

pub(super) use panel::GRID;

use super::iq_tables::IQ1;
use super::{Entry, blocks, iq};

const COLS: usize = 256;
const BYTES: usize = 2 + COLS / 8 + COLS / 16;

const _: () = assert!(BYTES == 50);

pub(super) static ENTRY: Entry = Entry::plain("iq1_s", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let d = blocks::half(bytes, 0);
    for (at, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let word = blocks::word(bytes, 34 + at / 4 * 2);
        let scale = d * f32::from(2 * (word >> 12 & 7) + 1);
        let index = usize::from(bytes[2 + at]) | usize::from(word >> (at % 4 * 3) & 7) << 8;
        iq::ternary(IQ1[index], iq::shift(word >> 15), scale, out);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::IQ1_S]);
    }
}
