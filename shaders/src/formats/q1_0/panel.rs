//! `q1_0` as a panel: `u` is 2 where the bit is set, `m = d`. A unit is two blocks.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::{blocks, iq};

use super::BYTES;

/// Bytes of a unit.
pub(super) const UNIT: usize = 2 * BYTES;

pub(super) struct Q10;

pub(super) const PANEL: Panel = Panel::of::<Q10, UNIT, 0, 8>();

impl Units<UNIT, 0, 8> for Q10 {
    const MOST: u8 = 2;

    #[inline(always)]
    fn unit(bytes: &[u8; UNIT], _: &[u8; 0], out: &mut Unit<8>) {
        for (index, (block, out_bytes)) in bytes.as_chunks::<BYTES>().0.iter().zip(out.values.as_chunks_mut::<128>().0).enumerate() {
            let d = blocks::binary16(blocks::word(block, 0));
            out.scales[index * 4..][..4].fill(d);
            out.mins[index * 4..][..4].fill(d);
            for (out, byte) in out_bytes.as_chunks_mut::<8>().0.iter_mut().zip(&block[2..]) {
                *out = (iq::BYTES[usize::from(*byte)] & 0x0202_0202_0202_0202).to_le_bytes();
            }
        }
    }
}
