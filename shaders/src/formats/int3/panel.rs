//! `int3-g64` as a panel: `u = v + 4`, `m = 4 s`.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::scales;

use super::{BLOCK, LOW};

/// Bytes of a unit.
const UNIT: usize = 4 * BLOCK;

pub(super) struct Int3;

pub(super) const PANEL: Panel = Panel::of::<Int3, UNIT, 16, 8>();

impl Units<UNIT, 16, 8> for Int3 {
    const MOST: u8 = 7;

    #[inline(always)]
    fn unit(values: &[u8; UNIT], scales: &[u8; 16], out: &mut Unit<8>) {
        scales::groups(scales, 4.0, out);
        for (block, out) in values.as_chunks::<BLOCK>().0.iter().zip(out.values.as_chunks_mut::<64>().0) {
            let (low, high) = block.split_at(LOW);
            for (out, low) in out.as_chunks_mut::<4>().0.iter_mut().zip(low) {
                *out = [0, 2, 4, 6].map(|shift| low >> shift & 3);
            }
            for (out, high) in out.as_chunks_mut::<8>().0.iter_mut().zip(high) {
                out.iter_mut().enumerate().for_each(|(bit, out)| *out |= (high >> bit & 1) << 2);
            }
        }
    }
}
