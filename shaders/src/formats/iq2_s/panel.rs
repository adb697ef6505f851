//! `iq2_s` as a panel: `u = 43 + G[q] * sign`, `m = 43 s`.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::iq_tables::IQ2_S;
use crate::formats::{blocks, iq};

use super::BYTES;

/// The grid in bytes.
static GRID: [u64; 1024] = iq::eights(&IQ2_S, [8, 25, 43, 0]);

pub(super) struct Iq2S;

pub(super) const PANEL: Panel = Panel::of::<Iq2S, BYTES, 0, 16>();

impl Units<BYTES, 0, 16> for Iq2S {
    const MOST: u8 = 86;

    #[inline(always)]
    fn unit(bytes: &[u8; BYTES], _: &[u8; 0], out: &mut Unit<16>) {
        let d = blocks::binary16(blocks::word(bytes, 0));
        for group in 0..16 {
            out.scales[group] = d * (0.5 + f32::from(blocks::nibble(&bytes[74..], group))) * 0.25;
            out.mins[group] = 43.0 * out.scales[group];
        }
        for (at, out) in out.values.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let high = bytes[66 + at / 4] >> (at % 4 * 2) & 3;
            *out = iq::signed(GRID[usize::from(bytes[2 + at]) | usize::from(high) << 8], bytes[34 + at], 43);
        }
    }
}
