//! `iq2_xs`: eight numbers from a grid of 512; 256 a block, groups of 16: `w = (d * (0.5 + S[g]) * 0.25) * G[q] * sign`. ggml's type 17.
//!
//! ```text
//! byte 0..1      d (binary16, little-endian)
//! byte 2..65     two bytes for 8 columns: bits 15..9 their signs, 8..0 q (little-endian)
//! byte 66..73    byte 66+k has S[2k+1] in bits 7..4, S[2k] in bits 3..0
//! ```
//!
//! Signs as in `iq2_xxs`; the grid is `iq_tables::IQ2_XS`. Products in f32, in the reference's order (gguf `IQ2_XS`): equal bits.

mod panel;

use super::iq_tables::IQ2_XS;
use super::{Entry, blocks, iq};

const COLS: usize = 256;
const BYTES: usize = 2 + COLS / 4 + COLS / 32;

const _: () = assert!(BYTES == 74);

pub(super) static ENTRY: Entry = Entry::plain("iq2_xs", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let d = blocks::half(bytes, 0);
    for (at, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let word = blocks::word(bytes, 2 + 2 * at);
        let scale = d * (0.5 + f32::from(blocks::nibble(&bytes[66..], at / 2))) * 0.25;
        iq::eight(IQ2_XS[usize::from(word & 511)], iq::even_signs(u32::from(word >> 9)), scale, out);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::IQ2_XS]);
    }
}
