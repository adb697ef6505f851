//! `nvfp4` as a panel: `u = V[q] + 12`, `m = 12 s`. A unit is four blocks.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::{blocks, fp4};

use super::BYTES;

/// Bytes of a unit.
pub(super) const UNIT: usize = 4 * BYTES;

pub(super) struct Nvfp4;

pub(super) const PANEL: Panel = Panel::of::<Nvfp4, UNIT, 0, 16>();

impl Units<UNIT, 0, 16> for Nvfp4 {
    const MOST: u8 = 24;

    #[inline(always)]
    fn unit(bytes: &[u8; UNIT], _: &[u8; 0], out: &mut Unit<16>) {
        for (index, (block, codes)) in bytes.as_chunks::<BYTES>().0.iter().zip(out.values.as_chunks_mut::<64>().0).enumerate() {
            for (at, codes) in codes.as_chunks_mut::<16>().0.iter_mut().enumerate() {
                let group = index * 4 + at;
                out.scales[group] = fp4::half_ue4m3(block[at]);
                out.mins[group] = 12.0 * out.scales[group];
                blocks::looked_up(&fp4::U, blocks::at::<8>(block, 4 + at * 8), codes);
            }
        }
    }
}
