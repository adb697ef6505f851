//! `iq1_m`: eight of -1, 0, 1 from the grid of `iq1_s`; 256 a block, groups of 16: `w = (d * (2 * S[g] + 1)) * (G[q] + t)`. ggml's type 29.
//!
//! ```text
//! byte 0..31     bits 7..0 of q, of 8 columns each
//! byte 32..47    nibble k, the lower one of a byte first: bit 3 set: t of q[k] is -1/8, else 1/8; bits 2..0: bits 10..8 of q[k]
//! byte 48..55    four little-endian words k: bits 15..12: bits 4k+3..4k of d (binary16);
//!                bits 11..9, 8..6, 5..3, 2..0: S[4k+3], S[4k+2], S[4k+1], S[4k]
//! ```
//!
//! The grid is `iq_tables::IQ1`. In f32, in the reference's order (gguf `IQ1_M`): equal bits.

mod panel;

use super::iq_tables::IQ1;
use super::{Entry, blocks, iq};

const COLS: usize = 256;
const BYTES: usize = COLS / 8 + COLS / 16 + COLS / 32;

const _: () = assert!(BYTES == 56);

pub(super) static ENTRY: Entry = Entry::plain("iq1_m", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let words = [48, 50, 52, 54].map(|at| blocks::word(bytes, at));
    let d = words.iter().rev().fold(0, |d, word| d << 4 | word >> 12);
    let d = half::f16::from_bits(d).to_f32();
    for (at, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let (group, high) = (at / 2, blocks::nibble(&bytes[32..48], at));
        let scale = d * f32::from(2 * (words[group / 4] >> (group % 4 * 3) & 7) + 1);
        let index = usize::from(bytes[at]) | usize::from(high & 7) << 8;
        iq::ternary(IQ1[index], iq::shift(u16::from(high >> 3)), scale, out);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::IQ1_M]);
    }
}
