//! `iq4_xs`: four bits that choose from the numbers of `iq4_nl`; 256 a block, groups of 32: `w = (d * (S[g] - 32)) * V[q]`. ggml's type 23.
//!
//! ```text
//! byte 0..1     d (binary16, little-endian)
//! byte 2..3     bits 5..4 of S[7], S[6] .. S[0] in bits 15..14 to 1..0 (little-endian)
//! byte 4..7     byte 4+k has bits 3..0 of S[2k+1] in bits 7..4, of S[2k] in bits 3..0
//! byte 8..135   16 bytes for each group g: byte i has q[32g+16+i] in bits 7..4, q[32g+i] in bits 3..0
//! ```
//!
//! Products in f32, in the reference's order (gguf `IQ4_XS`): equal bits.

#[cfg(target_arch = "x86_64")]
mod fast;
mod panel;

use super::iq4_nl::V;
use super::{Entry, blocks};

const COLS: usize = 256;
const BYTES: usize = 2 + 2 + COLS / 64 + COLS / 2;

const _: () = assert!(BYTES == 136);

pub(super) static ENTRY: Entry = Entry::plain("iq4_xs", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let (d, high) = (blocks::half(bytes, 0), blocks::word(bytes, 2));
    for (group, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let scale = u16::from(blocks::nibble(&bytes[4..8], group)) | (high >> (2 * group) & 3) << 4;
        let scale = d * (f32::from(scale) - 32.0);
        blocks::halves(&bytes[8 + group * 16..][..16], out, |_, code| scale * V[usize::from(code)]);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::IQ4_XS]);
    }
}
