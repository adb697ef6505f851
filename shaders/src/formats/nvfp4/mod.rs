//! `nvfp4`: four-bit floats, 64 numbers a block, groups of 16 with a scale: `w = (s[g] / 2) * V[q]`, V twice E2M1's numbers. ggml's type
//! 40. The scale of a whole tensor, where a file has one, is a tensor of its own.
//!
//! ```text
//! byte 0..3     s[0..3]: E4M3, bias 7; the sign bit counts for nothing, 127 is zero
//! byte 4..35    8 bytes for each group g: byte i has q[16g+8+i] in bits 7..4, q[16g+i] in bits 3..0      code: sign e1 e0 m
//! ```
//!
//! Every product is exact in f32; minus zero is zero, as in the reference (gguf `NVFP4`): equal bits.

mod panel;

use super::{Entry, blocks, fp4};

const COLS: usize = 64;
const BYTES: usize = COLS / 16 + COLS / 2;

const _: () = assert!(BYTES == 36);

pub(super) static ENTRY: Entry = Entry::plain("nvfp4", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let scale = fp4::half_ue4m3(bytes[group]);
        blocks::halves(&bytes[4 + group * 8..][..8], out, |_, code| scale * fp4::TWICE[usize::from(code)]);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::NVFP4]);
    }
}
