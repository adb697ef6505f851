//! `tq2_0` as a panel: `u = q`, `m = d`.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::{blocks, kquant};

use super::BYTES;

pub(super) struct Tq20;

pub(super) const PANEL: Panel = Panel::of::<Tq20, BYTES, 0, 8>();

impl Units<BYTES, 0, 8> for Tq20 {
    const MOST: u8 = 3;

    #[inline(always)]
    fn unit(bytes: &[u8; BYTES], _: &[u8; 0], out: &mut Unit<8>) {
        let d = blocks::binary16(blocks::word(bytes, 64));
        (out.scales, out.mins) = ([d; 8], [d; 8]);
        kquant::codes_of_two(blocks::at(bytes, 0), &mut out.values);
    }
}
