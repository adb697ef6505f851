//! `q6_k`: six bits, 256 numbers a block; groups of 16 with a signed scale: `w = (d * S[g]) * (q - 32)`. ggml's type 14.
//!
//! ```text
//! byte 0..127     bits 3..0 of q: 64 bytes for each half h; byte 64h+i has column 128h+64+i in bits 7..4, column 128h+i in bits 3..0
//! byte 128..191   bits 5..4 of q: 32 bytes for each half h; byte 32h+i has columns 128h+96+i, +64+i, +32+i, +i in bits 7..6 to 1..0
//! byte 192..207   S[0..15], signed
//! byte 208..209   d (binary16, little-endian)
//! ```
//!
//! Products in f32, in the reference's order (gguf `Q6_K`): equal bits.

#[cfg(target_arch = "x86_64")]
mod fast;
mod panel;

use super::{Entry, blocks};

const COLS: usize = 256;
const BYTES: usize = COLS / 2 + COLS / 4 + COLS / 16 + 2;

const _: () = assert!(BYTES == 210);

pub(super) static ENTRY: Entry = Entry::plain("q6_k", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let d = blocks::half(bytes, 208);
    for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let scale = d * f32::from(bytes[192 + group].cast_signed());
        let (half, quarter) = (group / 8, group % 8 / 2);
        let low = &bytes[half * 64 + group % 4 * 16..][..16];
        let high = &bytes[128 + half * 32 + group % 2 * 16..][..16];
        for (out, (low, high)) in out.iter_mut().zip(low.iter().zip(high)) {
            let code = low >> (quarter / 2 * 4) & 15 | (high >> (quarter * 2) & 3) << 4;
            *out = scale * (f32::from(code) - 32.0);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::Q6_K]);
    }
}
