//! `q4_0` as a panel: `u = q`, `m = 8 d`. A unit is eight blocks.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::blocks;

use super::BYTES;

/// Bytes of a unit.
pub(super) const UNIT: usize = 8 * BYTES;

pub(super) struct Q40;

pub(super) const PANEL: Panel = Panel::of::<Q40, UNIT, 0, 8>();

impl Units<UNIT, 0, 8> for Q40 {
    const MOST: u8 = 15;
    #[cfg(target_arch = "x86_64")]
    const DIRECT: crate::fast::panel::Direct = crate::fast::gemv::registers::direct::<Self, UNIT, 0, 8>();

    #[inline(always)]
    fn unit(bytes: &[u8; UNIT], _: &[u8; 0], out: &mut Unit<8>) {
        for (group, (block, codes)) in bytes.as_chunks::<BYTES>().0.iter().zip(out.values.as_chunks_mut::<32>().0).enumerate() {
            (out.scales[group], out.mins[group]) = blocks::offset(block, 8.0);
            blocks::codes(&block[2..], codes);
        }
    }
}
