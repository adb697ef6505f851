//! `q2_0` as a panel: `u = q`, `m = d`. A unit is four blocks.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::blocks;

use super::BYTES;

/// Bytes of a unit.
pub(super) const UNIT: usize = 4 * BYTES;

pub(super) struct Q20;

pub(super) const PANEL: Panel = Panel::of::<Q20, UNIT, 0, 8>();

impl Units<UNIT, 0, 8> for Q20 {
    const MOST: u8 = 3;

    #[inline(always)]
    fn unit(bytes: &[u8; UNIT], _: &[u8; 0], out: &mut Unit<8>) {
        for (index, (block, out_bytes)) in bytes.as_chunks::<BYTES>().0.iter().zip(out.values.as_chunks_mut::<64>().0).enumerate() {
            let d = blocks::binary16(blocks::word(block, 0));
            out.scales[index * 2..][..2].fill(d);
            out.mins[index * 2..][..2].fill(d);
            for (out, byte) in out_bytes.as_chunks_mut::<4>().0.iter_mut().zip(&block[2..]) {
                *out = [0, 2, 4, 6].map(|shift| byte >> shift & 3);
            }
        }
    }
}
