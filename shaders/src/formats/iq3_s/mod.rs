//! `iq3_s`: four numbers from a grid of 512; 256 a block, groups of 32: `w = (d * (1 + 2 * S[g])) * G[q] * sign`. ggml's type 21.
//!
//! ```text
//! byte 0..1       d (binary16, little-endian)
//! byte 2..65      bits 7..0 of q, of 4 columns each
//! byte 66..73     byte 66+k has bit 8 of q[8k+7] .. q[8k] in bits 7 to 0
//! byte 74..105    signs of 8 columns each, the first in bit 0
//! byte 106..109   byte 106+k has S[2k+1] in bits 7..4, S[2k] in bits 3..0
//! ```
//!
//! The grid is `iq_tables::IQ3_S`. Products in f32, in the reference's order (gguf `IQ3_S`): equal bits.

mod panel;

use super::iq_tables::IQ3_S;
use super::{Entry, blocks, iq};

const COLS: usize = 256;
const BYTES: usize = 2 + COLS / 4 + COLS / 32 + COLS / 8 + COLS / 64;

const _: () = assert!(BYTES == 110);

/// The numbers of the codes; the second half does not occur.
const NUMBERS: [f32; 16] = [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];

pub(super) static ENTRY: Entry = Entry::plain("iq3_s", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let d = blocks::half(bytes, 0);
    for (at, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let high = bytes[66 + at / 8] >> (at % 8) & 1;
        let scale = d * f32::from(1 + 2 * blocks::nibble(&bytes[106..], at / 8));
        let signs = bytes[74 + at / 2] >> (at % 2 * 4);
        iq::four(IQ3_S[usize::from(bytes[2 + at]) | usize::from(high) << 8], &NUMBERS, signs, scale, out);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::IQ3_S]);
    }
}
