//! `int3-g64`: three-bit whole numbers `v` from -4 to 3, stored as `v + 4`, and an f32 scale for every 64 numbers of a row apart.
//! `w = v * s`. A row is padded to whole groups of 24 bytes: the low two bits of the codes, then their high bits.
//!
//! ```text
//! value byte 24g+j, j = 0..15      bits 2k+1..2k: bits 1..0 of the code of column 64g + 4j + k, k = 0..3
//! value byte 24g+16+j, j = 0..7    bit k: bit 2 of the code of column 64g + 8j + k, k = 0..7
//! scale bytes 4g..4g+4             s[g], binary32, little-endian
//! ```
//!
//! The layout is the source engine's (its format 5), bit order as its converter writes it (JustVugg/colibri, `quant_int3_g64` of
//! `c/tools/convert_fp8_to_int4.py`). Decoding rounds once, the product. Cases: planes unpacked by compressed-tensors.

mod panel;

use super::{Entry, scales};

const GROUP: usize = 64;
const LOW: usize = GROUP * 2 / 8;
const HIGH: usize = GROUP / 8;
const BLOCK: usize = LOW + HIGH;

const _: () = assert!(LOW == 16 && HIGH == 8 && BLOCK == 24);

pub(super) static ENTRY: Entry = Entry {
    panel: Some(panel::PANEL),
    scale_bytes: scales::bytes::<scales::F32, GROUP>,
    ..Entry::plain("int3-g64", include_str!("decode.glsl"), |cols| cols.div_ceil(GROUP).checked_mul(BLOCK), decode)
};

fn decode(values: &[u8], scales: &[u8], out: &mut [f32]) {
    for (group, block) in out.chunks_mut(GROUP).zip(values.as_chunks::<BLOCK>().0) {
        let (low, high) = block.split_at(LOW);
        for (at, number) in group.iter_mut().enumerate() {
            let code = low[at / 4] >> (at % 4 * 2) & 3 | (high[at / 8] >> (at % 8) & 1) << 2;
            *number = f32::from(code as i8 - 4);
        }
    }
    scales::apply::<scales::F32, GROUP>(scales, out);
}

#[cfg(test)]
mod tests {
    use crate::formats::{Format, cases};

    #[test]
    fn decodes_as_the_reference() {
        cases::check(include_str!("cases.json"), &[Format::INT3_G64]);
    }

    /// By hand, from the diagram: columns 0..5 have the codes 7, 2, 0, 5, 4; column 64, in a group of its own, has code 1.
    #[test]
    fn planes_are_joined() {
        let mut values = [0u8; 48];
        (values[0], values[16], values[24]) = (0b01_00_10_11, 0b0001_1001, 0b01);
        let scales = [0.5f32.to_le_bytes(), 2f32.to_le_bytes()].concat();
        let mut out = [9.0; 65];
        Format::INT3_G64.decode_row(&values, &scales, &mut out);
        assert_eq!(out[..6], [1.5, -1.0, -2.0, 0.5, 0.0, -2.0]);
        assert_eq!(out[64], -6.0);
    }
}
