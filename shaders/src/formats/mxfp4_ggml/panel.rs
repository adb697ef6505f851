//! `mxfp4-ggml` as a panel: `u = V[q] + 12`, `m = 12 s`. A unit is eight blocks.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::{blocks, fp4};

use super::BYTES;

/// Bytes of a unit.
pub(super) const UNIT: usize = 8 * BYTES;

pub(super) struct Mxfp4Ggml;

pub(super) const PANEL: Panel = Panel::of::<Mxfp4Ggml, UNIT, 0, 8>();

impl Units<UNIT, 0, 8> for Mxfp4Ggml {
    const MOST: u8 = 24;
    #[cfg(target_arch = "x86_64")]
    const DIRECT: crate::fast::panel::Direct = crate::fast::gemv::registers::direct::<Self, UNIT, 0, 8>();

    #[inline(always)]
    fn unit(bytes: &[u8; UNIT], _: &[u8; 0], out: &mut Unit<8>) {
        for (group, (block, codes)) in bytes.as_chunks::<BYTES>().0.iter().zip(out.values.as_chunks_mut::<32>().0).enumerate() {
            out.scales[group] = fp4::half_e8m0(block[0]);
            out.mins[group] = 12.0 * out.scales[group];
            blocks::looked_up(&fp4::U, &block[1..], codes);
        }
    }
}
