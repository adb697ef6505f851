//! `q3_k`: three bits, 256 numbers a block; groups of 16 with a scale: `w = (d * (S[g] - 32)) * (q - 4)`. ggml's type 11.
//!
//! ```text
//! byte 0..31      byte i has bit 2 of q, columns 224+i, 192+i .. i, in bits 7 to 0
//! byte 32..95     bits 1..0 of q: 32 bytes for each half h; byte 32h+i has columns 128h+96+i, +64+i, +32+i, +i in bits 7..6 to 1..0
//! byte 96..103    byte 96+g has bits 3..0 of S[g+8] in bits 7..4, of S[g] in bits 3..0
//! byte 104..107   byte 104+k has bits 5..4 of S[k+12], S[k+8], S[k+4], S[k] in bits 7..6 to 1..0
//! byte 108..109   d (binary16, little-endian)
//! ```
//!
//! Products in f32, in the reference's order (gguf `Q3_K`): equal bits.

#[cfg(target_arch = "x86_64")]
mod fast;
mod panel;

use super::{Entry, blocks, kquant};

const COLS: usize = 256;
const BYTES: usize = COLS / 8 + COLS / 4 + 12 + 2;

const _: () = assert!(BYTES == 110);

pub(super) static ENTRY: Entry = Entry::plain("q3_k", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn scale(packed: &[u8], group: usize) -> f32 {
    let low = packed[group % 8] >> (group / 8 * 4) & 15;
    let high = packed[8 + group % 4] >> (group / 4 * 2) & 3;
    f32::from(low | high << 4) - 32.0
}

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let d = blocks::half(bytes, 108);
    let high = &bytes[..32];
    for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let scale = d * scale(&bytes[96..108], group);
        let number = |at: usize, code: u8| scale * (f32::from(code | (high[at] >> (group / 2) & 1) << 2) - 4.0);
        kquant::pairs(&bytes[32..96], group, out, number);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::Q3_K]);
    }
}
