//! `q5_k`: five bits, 256 numbers a block; groups of 32 with scale and minimum: `w = (d * S[g]) * q - dmin * M[g]`. ggml's type 13.
//!
//! ```text
//! byte 0..1      d (binary16, little-endian)
//! byte 2..3      dmin (binary16, little-endian)
//! byte 4..15     S and M of 8 groups, six bits each: see kquant::scale_min
//! byte 16..47    byte 16+i has bit 4 of q[32g+i] in bit g
//! byte 48..175   32 bytes for each pair of groups p: byte i has q[64p+32+i] in bits 7..4, q[64p+i] in bits 3..0 (bits 3..0 of q)
//! ```
//!
//! Products and the difference in f32, in the reference's order (gguf `Q5_K`): equal bits.

#[cfg(target_arch = "x86_64")]
mod fast;
mod panel;

use super::{Entry, blocks, kquant};

const COLS: usize = 256;
const BYTES: usize = 2 + 2 + 12 + COLS / 8 + COLS / 2;

const _: () = assert!(BYTES == 176);

pub(super) static ENTRY: Entry = Entry::plain("q5_k", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let (d, dmin) = (blocks::half(bytes, 0), blocks::half(bytes, 2));
    let high = &bytes[16..48];
    for (group, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (scale, min) = kquant::scale_min(&bytes[4..16], group);
        let (scale, min, shift) = (d * scale, dmin * min, group % 2 * 4);
        let codes = bytes[48 + group / 2 * 32..][..32].iter().zip(high);
        for (out, (low, high)) in out.iter_mut().zip(codes) {
            *out = scale * f32::from(low >> shift & 15 | (high >> group & 1) << 4) - min;
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::Q5_K]);
    }
}
