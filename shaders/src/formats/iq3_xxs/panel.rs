//! `iq3_xxs` as a panel: `u = 62 + G[q] * sign`, `m = 62 s`.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::iq_tables::IQ3_XXS;
use crate::formats::{blocks, iq};

use super::BYTES;

/// The grid in bytes.
static GRID: [u32; 256] = iq::fours(&IQ3_XXS, [4, 12, 20, 28, 36, 44, 52, 62]);

pub(super) struct Iq3Xxs;

pub(super) const PANEL: Panel = Panel::of::<Iq3Xxs, BYTES, 0, 8>();

impl Units<BYTES, 0, 8> for Iq3Xxs {
    const MOST: u8 = 124;

    #[inline(always)]
    fn unit(bytes: &[u8; BYTES], _: &[u8; 0], out: &mut Unit<8>) {
        let d = blocks::binary16(blocks::word(bytes, 0));
        for (group, codes) in out.values.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let word = blocks::quad(bytes, 66 + 4 * group);
            out.scales[group] = d * (0.5 + (word >> 28) as f32) * 0.5;
            out.mins[group] = 62.0 * out.scales[group];
            for (at, out) in codes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let four = |at: usize| u64::from(GRID[usize::from(bytes[2 + group * 8 + at])]);
                *out = iq::signed(four(2 * at) | four(2 * at + 1) << 32, iq::even_signs(word >> (7 * at)), 62);
            }
        }
    }
}
