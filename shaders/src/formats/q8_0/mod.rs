//! `q8_0`: signed bytes, a scale for every 32 numbers: `w = q * d`. ggml's type 8.
//!
//! ```text
//! byte 0..1     d (binary16, little-endian)
//! byte 2..33    q[0..31], signed
//! ```
//!
//! One product in f32, as in the reference (gguf `Q8_0`): equal bits.

#[cfg(target_arch = "x86_64")]
mod fast;
mod panel;

use super::{Entry, blocks};

const COLS: usize = 32;
const BYTES: usize = 2 + COLS;

const _: () = assert!(BYTES == 34);

pub(super) static ENTRY: Entry = Entry::plain("q8_0", include_str!("decode.glsl"), blocks::row_bytes::<COLS, BYTES>, |bytes, _, out| {
    blocks::decode::<COLS, BYTES>(bytes, out, block)
})
.fast(panel::PANEL);

fn block(bytes: &[u8; BYTES], out: &mut [f32; COLS]) {
    let d = blocks::half(bytes, 0);
    out.iter_mut().zip(&bytes[2..]).for_each(|(out, code)| *out = f32::from(code.cast_signed()) * d);
}

#[cfg(test)]
mod tests {
    #[test]
    fn decodes_as_the_reference() {
        crate::formats::cases::check(include_str!("cases.json"), &[crate::formats::Format::Q8_0]);
    }
}
