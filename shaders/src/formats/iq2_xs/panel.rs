//! `iq2_xs` as a panel: `u = 43 + G[q] * sign`, `m = 43 s`.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::iq_tables::IQ2_XS;
use crate::formats::{blocks, iq};

use super::BYTES;

/// The grid in bytes.
static GRID: [u64; 512] = iq::eights(&IQ2_XS, [8, 25, 43, 0]);

pub(super) struct Iq2Xs;

pub(super) const PANEL: Panel = Panel::of::<Iq2Xs, BYTES, 0, 16>();

impl Units<BYTES, 0, 16> for Iq2Xs {
    const MOST: u8 = 86;

    #[inline(always)]
    fn unit(bytes: &[u8; BYTES], _: &[u8; 0], out: &mut Unit<16>) {
        let d = blocks::binary16(blocks::word(bytes, 0));
        for group in 0..16 {
            out.scales[group] = d * (0.5 + f32::from(blocks::nibble(&bytes[66..], group))) * 0.25;
            out.mins[group] = 43.0 * out.scales[group];
        }
        for (at, out) in out.values.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let word = blocks::word(bytes, 2 + 2 * at);
            *out = iq::signed(GRID[usize::from(word & 511)], iq::even_signs(u32::from(word >> 9)), 43);
        }
    }
}
