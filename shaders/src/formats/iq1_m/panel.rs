//! `iq1_m` as a panel: `u = 8 * (G[q] + t) + 9` with an eighth of the scale, `m = 9 s`.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::iq1_s::GRID;
use crate::formats::{blocks, iq};

use super::BYTES;

pub(super) struct Iq1M;

pub(super) const PANEL: Panel = Panel::of::<Iq1M, BYTES, 0, 16>();

impl Units<BYTES, 0, 16> for Iq1M {
    const MOST: u8 = 18;

    #[inline(always)]
    fn unit(bytes: &[u8; BYTES], _: &[u8; 0], out: &mut Unit<16>) {
        let words = [48, 50, 52, 54].map(|at| blocks::word(bytes, at));
        let d = blocks::binary16(words.iter().rev().fold(0, |d, word| d << 4 | word >> 12));
        for group in 0..16 {
            out.scales[group] = d * f32::from(2 * (words[group / 4] >> (group % 4 * 3) & 7) + 1) * 0.125;
            out.mins[group] = 9.0 * out.scales[group];
        }
        for (at, out) in out.values.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let high = blocks::nibble(&bytes[32..48], at);
            *out = iq::shifted(GRID[usize::from(bytes[at]) | usize::from(high & 7) << 8], u16::from(high >> 3));
        }
    }
}
