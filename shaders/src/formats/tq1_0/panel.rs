//! `tq1_0` as a panel: `u = q`, `m = d`.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::blocks;

use super::BYTES;

pub(super) struct Tq10;

pub(super) const PANEL: Panel = Panel::of::<Tq10, BYTES, 0, 8>();

impl Units<BYTES, 0, 8> for Tq10 {
    const MOST: u8 = 2;

    #[inline(always)]
    fn unit(bytes: &[u8; BYTES], _: &[u8; 0], out: &mut Unit<8>) {
        let d = blocks::binary16(blocks::word(bytes, 52));
        (out.scales, out.mins) = ([d; 8], [d; 8]);
        let (first, rest) = out.values.split_at_mut(160);
        let (second, third) = rest.split_at_mut(80);
        for (bytes, out) in [(&bytes[..32], first), (&bytes[32..48], second), (&bytes[48..52], third)] {
            for (digit, out) in out.chunks_exact_mut(bytes.len()).enumerate() {
                let power = [1u8, 3, 9, 27, 81][digit];
                for (out, byte) in out.iter_mut().zip(bytes) {
                    *out = ((u16::from(byte.wrapping_mul(power)) * 3) >> 8) as u8;
                }
            }
        }
    }
}
