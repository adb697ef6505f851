//! `iq3_s` as a panel: `u = 15 + G[q] * sign`, `m = 15 s`.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::iq_tables::IQ3_S;
use crate::formats::{blocks, iq};

use super::BYTES;

/// The grid in bytes.
static GRID: [u32; 512] = iq::fours(&IQ3_S, [1, 3, 5, 7, 9, 11, 13, 15]);

pub(super) struct Iq3S;

pub(super) const PANEL: Panel = Panel::of::<Iq3S, BYTES, 0, 8>();

impl Units<BYTES, 0, 8> for Iq3S {
    const MOST: u8 = 30;

    #[inline(always)]
    fn unit(bytes: &[u8; BYTES], _: &[u8; 0], out: &mut Unit<8>) {
        let d = blocks::binary16(blocks::word(bytes, 0));
        for group in 0..8 {
            out.scales[group] = d * f32::from(1 + 2 * blocks::nibble(&bytes[106..], group));
            out.mins[group] = 15.0 * out.scales[group];
        }
        for (at, out) in out.values.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let four = |at: usize| u64::from(GRID[usize::from(bytes[2 + at]) | usize::from(bytes[66 + at / 8] >> (at % 8) & 1) << 8]);
            *out = iq::signed(four(2 * at) | four(2 * at + 1) << 32, bytes[74 + at], 15);
        }
    }
}
