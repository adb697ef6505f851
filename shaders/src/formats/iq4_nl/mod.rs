//! `iq4_nl`: four bits that choose from sixteen numbers, a scale for every 32: `w = d * V[q]`. ggml's type 20.
//!
//! ```text
//! byte 0..1     d (binary16, little-endian)
//! byte 2..17    byte 2+i has q[16+i] in bits 7..4, q[i] in bits 3..0
//! ```
//!
//! One product in f32, as in the reference (gguf `IQ4_NL`): equal bits.

#[cfg(target_arch = "x86_64")]
mod fast;
mod panel;

pub(super) use panel::U;

use super::{Entry, blocks};

const COLS: usize = 32;
const BYTES: usize = 2 + COLS / 2;

const _: () = assert!(BYTES == 18);

/// The numbers of the codes.
pub(super) const V: [f32; 16] = [-127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0, 13.0, 25.0, 38.0, 53.0, 69.0, 89.0, 113.0];

pub(super) static ENTRY: Entry = Entry::plain("iq4_nl", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let d = blocks::half(bytes, 0);
    blocks::halves(&bytes[2..], out, |_, code| d * V[usize::from(code)]);
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::IQ4_NL]);
    }
}
