//! `q5_1` as a panel: `u = q`, `m = -m`. A unit is eight blocks.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::blocks;

use super::BYTES;

/// Bytes of a unit.
pub(super) const UNIT: usize = 8 * BYTES;

pub(super) struct Q51;

pub(super) const PANEL: Panel = Panel::of::<Q51, UNIT, 0, 8>();

impl Units<UNIT, 0, 8> for Q51 {
    const MOST: u8 = 31;

    #[inline(always)]
    fn unit(bytes: &[u8; UNIT], _: &[u8; 0], out: &mut Unit<8>) {
        for (group, (block, codes)) in bytes.as_chunks::<BYTES>().0.iter().zip(out.values.as_chunks_mut::<32>().0).enumerate() {
            out.scales[group] = blocks::binary16(blocks::word(block, 0));
            out.mins[group] = -blocks::binary16(blocks::word(block, 2));
            blocks::codes(&block[8..], codes);
            blocks::fifths(blocks::quad(block, 4), codes);
        }
    }
}
