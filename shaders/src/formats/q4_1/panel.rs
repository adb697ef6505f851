//! `q4_1` as a panel: `u = q`, `m = -m`. A unit is eight blocks.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::blocks;

use super::BYTES;

/// Bytes of a unit.
pub(super) const UNIT: usize = 8 * BYTES;

pub(super) struct Q41;

pub(super) const PANEL: Panel = Panel::of::<Q41, UNIT, 0, 8>();

impl Units<UNIT, 0, 8> for Q41 {
    const MOST: u8 = 15;

    #[inline(always)]
    fn unit(bytes: &[u8; UNIT], _: &[u8; 0], out: &mut Unit<8>) {
        for (group, (block, codes)) in bytes.as_chunks::<BYTES>().0.iter().zip(out.values.as_chunks_mut::<32>().0).enumerate() {
            out.scales[group] = blocks::binary16(blocks::word(block, 0));
            out.mins[group] = -blocks::binary16(blocks::word(block, 2));
            blocks::codes(&block[4..], codes);
        }
    }
}
