//! `q6_k` as a panel: `u = q`, `s = d * S[g]`, `m = 32 s`.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::blocks;

use super::BYTES;

pub(super) struct Q6K;

pub(super) const PANEL: Panel = Panel::of::<Q6K, BYTES, 0, 16>();

impl Units<BYTES, 0, 16> for Q6K {
    const MOST: u8 = 63;
    #[cfg(target_arch = "x86_64")]
    const DIRECT: crate::fast::panel::Direct = crate::fast::gemv::registers::direct::<Self, BYTES, 0, 16>();

    #[inline(always)]
    fn unit(bytes: &[u8; BYTES], _: &[u8; 0], out: &mut Unit<16>) {
        let d = blocks::binary16(blocks::word(bytes, 208));
        for (group, code) in bytes[192..208].iter().enumerate() {
            out.scales[group] = d * f32::from(code.cast_signed());
            out.mins[group] = 32.0 * out.scales[group];
        }
        for (half, out) in out.values.as_chunks_mut::<128>().0.iter_mut().enumerate() {
            let (low, high): (&[u8; 64], &[u8; 32]) = (blocks::at(bytes, half * 64), blocks::at(bytes, 128 + half * 32));
            for at in 0..32 {
                out[at] = low[at] & 15 | high[at] << 4 & 0x30;
                out[at + 32] = low[at + 32] & 15 | high[at] << 2 & 0x30;
                out[at + 64] = low[at] >> 4 | high[at] & 0x30;
                out[at + 96] = low[at + 32] >> 4 | high[at] >> 2 & 0x30;
            }
        }
    }
}
