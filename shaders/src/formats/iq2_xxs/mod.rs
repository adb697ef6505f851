//! `iq2_xxs`: eight numbers from a grid of 256; 256 a block, groups of 32: `w = (d * (0.5 + S[g]) * 0.25) * G[q] * sign`. ggml's type 16.
//!
//! ```text
//! byte 0..1     d (binary16, little-endian)
//! byte 2..65    8 bytes for each group g:
//!   byte 0..3     q of 8 columns each
//!   byte 4..7     bits 31..28 S[g], 27..21, 20..14, 13..7, 6..0 signs of columns 24.., 16.., 8.., 0.. (little-endian)
//! ```
//!
//! A code of signs has a bit for each of seven columns, the lowest for the first; the eighth makes the number of minus signs even. The grid
//! is `iq_tables::IQ2_XXS`. Products in f32, in the reference's order (gguf `IQ2_XXS`): equal bits.

mod panel;

use super::iq_tables::IQ2_XXS;
use super::{Entry, blocks, iq};

const COLS: usize = 256;
const BYTES: usize = 2 + COLS / 4;

const _: () = assert!(BYTES == 66);

pub(super) static ENTRY: Entry = Entry::plain("iq2_xxs", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let d = blocks::half(bytes, 0);
    for (group, out) in bytes[2..].as_chunks::<8>().0.iter().zip(out.as_chunks_mut::<32>().0) {
        let word = blocks::quad(group, 4);
        let scale = d * (0.5 + (word >> 28) as f32) * 0.25;
        for (at, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            iq::eight(IQ2_XXS[usize::from(group[at])], iq::even_signs(word >> (7 * at)), scale, out);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::IQ2_XXS]);
    }
}
