//! `q3_k` as a panel: `u = q`, `s = d * (S[g] - 32)`, `m = 4 s`.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::{blocks, kquant};

use super::{BYTES, scale};

pub(super) struct Q3K;

pub(super) const PANEL: Panel = Panel::of::<Q3K, BYTES, 0, 16>();

impl Units<BYTES, 0, 16> for Q3K {
    const MOST: u8 = 7;
    #[cfg(target_arch = "x86_64")]
    const DIRECT: crate::fast::panel::Direct = crate::fast::gemv::registers::direct::<Self, BYTES, 0, 16>();

    #[inline(always)]
    fn unit(bytes: &[u8; BYTES], _: &[u8; 0], out: &mut Unit<16>) {
        let d = blocks::binary16(blocks::word(bytes, 108));
        for group in 0..16 {
            out.scales[group] = d * scale(&bytes[96..108], group);
            out.mins[group] = 4.0 * out.scales[group];
        }
        kquant::codes_of_two(blocks::at(bytes, 32), &mut out.values);
        let high: &[u8; 32] = blocks::at(bytes, 0);
        for (group, out) in out.values.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            out.iter_mut().zip(high).for_each(|(out, high)| *out |= (high >> group & 1) << 2);
        }
    }
}
