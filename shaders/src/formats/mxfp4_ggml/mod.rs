//! `mxfp4-ggml`: four-bit floats, a power of two for every 32 numbers, in blocks: `w = 2^(s-128) * V[q]`, V twice E2M1's numbers. ggml's
//! type 39, which it names MXFP4; `mxfp4` here is the layout whose scales stand apart.
//!
//! ```text
//! byte 0        s (E8M0)
//! byte 1..16    byte 1+i has q[16+i] in bits 7..4, q[i] in bits 3..0      code: sign e1 e0 m
//! ```
//!
//! As in the reference (gguf `MXFP4`): 255 is no NaN but 2^128, whose products of 1 and more are infinite, and minus zero is zero. One
//! product in f32: equal bits.

#[cfg(target_arch = "x86_64")]
mod fast;
mod panel;

use super::{Entry, blocks, fp4};

const COLS: usize = 32;
const BYTES: usize = 1 + COLS / 2;

const _: () = assert!(BYTES == 17);

pub(super) static ENTRY: Entry =
    Entry::plain("mxfp4-ggml", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
        blocks::decode::<COLS, BYTES>(bytes, out, block)
    })
    .fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let scale = fp4::half_e8m0(bytes[0]);
    blocks::halves(&bytes[1..], out, |_, code| scale * fp4::TWICE[usize::from(code)]);
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::MXFP4_GGML]);
    }
}
