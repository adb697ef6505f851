//! `iq1_s` as a panel: `u = 8 * (G[q] + t) + 9` with an eighth of the scale, `m = 9 s`.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::iq_tables::IQ1;
use crate::formats::{blocks, iq};

use super::BYTES;

/// The grid in bytes, eightfold.
pub(in super::super) static GRID: [u64; 2048] = iq::eights(&IQ1, [0, 8, 16, 24]);

pub(super) struct Iq1S;

pub(super) const PANEL: Panel = Panel::of::<Iq1S, BYTES, 0, 8>();

impl Units<BYTES, 0, 8> for Iq1S {
    const MOST: u8 = 18;

    #[inline(always)]
    fn unit(bytes: &[u8; BYTES], _: &[u8; 0], out: &mut Unit<8>) {
        let d = blocks::binary16(blocks::word(bytes, 0));
        for group in 0..8 {
            let word = blocks::word(bytes, 34 + group * 2);
            out.scales[group] = d * f32::from(2 * (word >> 12 & 7) + 1) * 0.125;
            out.mins[group] = 9.0 * out.scales[group];
        }
        for (at, out) in out.values.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let word = blocks::word(bytes, 34 + at / 4 * 2);
            let index = usize::from(bytes[2 + at]) | usize::from(word >> (at % 4 * 3) & 7) << 8;
            *out = iq::shifted(GRID[index], word >> 15);
        }
    }
}
