//! `iq3_xxs`: four numbers from a grid of 256; 256 a block, groups of 32: `w = (d * (0.5 + S[g]) * 0.5) * G[q] * sign`. ggml's type 18.
//!
//! ```text
//! byte 0..1      d (binary16, little-endian)
//! byte 2..65     q of 4 columns each
//! byte 66..97    4 bytes for each group (little-endian):
//!   bits 31..28 S[g], 27..21, 20..14, 13..7, 6..0 signs of columns 24.., 16.., 8.., 0..
//! ```
//!
//! Signs as in `iq2_xxs`; the grid is `iq_tables::IQ3_XXS`. Products in f32, in the reference's order (gguf `IQ3_XXS`): equal bits.

mod panel;

use super::iq_tables::IQ3_XXS;
use super::{Entry, blocks, iq};

const COLS: usize = 256;
const BYTES: usize = 2 + COLS / 4 + COLS / 8;

const _: () = assert!(BYTES == 98);

/// The numbers of the codes; the second half does not occur.
const NUMBERS: [f32; 16] = [4.0, 12.0, 20.0, 28.0, 36.0, 44.0, 52.0, 62.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];

pub(super) static ENTRY: Entry = Entry::plain("iq3_xxs", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let d = blocks::half(bytes, 0);
    for (group, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let word = blocks::quad(bytes, 66 + 4 * group);
        let scale = d * (0.5 + (word >> 28) as f32) * 0.5;
        for (at, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let signs = iq::even_signs(word >> (7 * (at / 2))) >> (at % 2 * 4);
            iq::four(IQ3_XXS[usize::from(bytes[2 + group * 8 + at])], &NUMBERS, signs, scale, out);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::IQ3_XXS]);
    }
}
