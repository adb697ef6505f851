//! `iq4_nl` as a panel: `u = V[q] + 127`, `m = 127 d`. A unit is eight blocks.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::blocks;

use super::BYTES;

/// Bytes of a unit.
pub(super) const UNIT: usize = 8 * BYTES;

/// The bytes of the codes.
pub(in super::super) const U: [u8; 16] = [0, 23, 44, 62, 78, 92, 105, 117, 128, 140, 152, 165, 180, 196, 216, 240];

pub(super) struct Iq4Nl;

pub(super) const PANEL: Panel = Panel::of::<Iq4Nl, UNIT, 0, 8>();

impl Units<UNIT, 0, 8> for Iq4Nl {
    const MOST: u8 = 240;
    #[cfg(target_arch = "x86_64")]
    const DIRECT: crate::fast::panel::Direct = crate::fast::gemv::registers::direct::<Self, UNIT, 0, 8>();

    #[inline(always)]
    fn unit(bytes: &[u8; UNIT], _: &[u8; 0], out: &mut Unit<8>) {
        for (group, (block, codes)) in bytes.as_chunks::<BYTES>().0.iter().zip(out.values.as_chunks_mut::<32>().0).enumerate() {
            (out.scales[group], out.mins[group]) = blocks::offset(block, 127.0);
            blocks::looked_up(&U, &block[2..], codes);
        }
    }
}
