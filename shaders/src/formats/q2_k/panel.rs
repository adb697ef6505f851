//! `q2_k` as a panel: `s = d * S[g]`, `m = dmin * M[g]`.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::{blocks, kquant};

use super::BYTES;

pub(super) struct Q2K;

pub(super) const PANEL: Panel = Panel::of::<Q2K, BYTES, 0, 16>();

impl Units<BYTES, 0, 16> for Q2K {
    const MOST: u8 = 3;
    #[cfg(target_arch = "x86_64")]
    const DIRECT: crate::fast::panel::Direct = crate::fast::gemv::registers::direct::<Self, BYTES, 0, 16>();

    #[inline(always)]
    fn unit(bytes: &[u8; BYTES], _: &[u8; 0], out: &mut Unit<16>) {
        let (d, dmin) = (blocks::binary16(blocks::word(bytes, 80)), blocks::binary16(blocks::word(bytes, 82)));
        for (group, code) in bytes[..16].iter().enumerate() {
            (out.scales[group], out.mins[group]) = (d * f32::from(code & 15), dmin * f32::from(code >> 4));
        }
        kquant::codes_of_two(blocks::at(bytes, 16), &mut out.values);
    }
}
