//! `q2_k`: two bits, 256 numbers a block; groups of 16 with scale and minimum: `w = (d * S[g]) * q - dmin * M[g]`. ggml's type 10.
//!
//! ```text
//! byte 0..15     byte g has M[g] in bits 7..4, S[g] in bits 3..0
//! byte 16..79    q: 32 bytes for each half h; byte 32h+i has columns 128h+96+i, +64+i, +32+i, +i in bits 7..6 to 1..0
//! byte 80..81    d (binary16, little-endian)
//! byte 82..83    dmin (binary16, little-endian)
//! ```
//!
//! Products and the difference in f32, in the reference's order (gguf `Q2_K`): equal bits.

#[cfg(target_arch = "x86_64")]
mod fast;
mod panel;

use super::{Entry, blocks, kquant};

const COLS: usize = 256;
const BYTES: usize = COLS / 16 + COLS / 4 + 2 + 2;

const _: () = assert!(BYTES == 84);

pub(super) static ENTRY: Entry = Entry::plain("q2_k", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let (d, dmin) = (blocks::half(bytes, 80), blocks::half(bytes, 82));
    for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let (scale, min) = (d * f32::from(bytes[group] & 15), dmin * f32::from(bytes[group] >> 4));
        kquant::pairs(&bytes[16..80], group, out, |_, code| scale * f32::from(code) - min);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::Q2_K]);
    }
}
