//! `iq2_xxs` as a panel: `u = 43 + G[q] * sign`, `m = 43 s`.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::iq_tables::IQ2_XXS;
use crate::formats::{blocks, iq};

use super::BYTES;

/// The grid in bytes.
static GRID: [u64; 256] = iq::eights(&IQ2_XXS, [8, 25, 43, 0]);

pub(super) struct Iq2Xxs;

pub(super) const PANEL: Panel = Panel::of::<Iq2Xxs, BYTES, 0, 8>();

impl Units<BYTES, 0, 8> for Iq2Xxs {
    const MOST: u8 = 86;

    #[inline(always)]
    fn unit(bytes: &[u8; BYTES], _: &[u8; 0], out: &mut Unit<8>) {
        let d = blocks::binary16(blocks::word(bytes, 0));
        for (index, (group, codes)) in bytes[2..].as_chunks::<8>().0.iter().zip(out.values.as_chunks_mut::<32>().0).enumerate() {
            let word = blocks::quad(group, 4);
            out.scales[index] = d * (0.5 + (word >> 28) as f32) * 0.25;
            out.mins[index] = 43.0 * out.scales[index];
            for (at, out) in codes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                *out = iq::signed(GRID[usize::from(group[at])], iq::even_signs(word >> (7 * at)), 43);
            }
        }
    }
}
