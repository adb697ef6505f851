//! `iq4_xs` as a panel: `u = V[q] + 127`, `s = d * (S[g] - 32)`, `m = 127 s`.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::blocks;
use crate::formats::iq4_nl::U;

use super::BYTES;

pub(super) struct Iq4Xs;

pub(super) const PANEL: Panel = Panel::of::<Iq4Xs, BYTES, 0, 8>();

impl Units<BYTES, 0, 8> for Iq4Xs {
    const MOST: u8 = 240;
    #[cfg(target_arch = "x86_64")]
    const DIRECT: crate::fast::panel::Direct = crate::fast::gemv::registers::direct::<Self, BYTES, 0, 8>();

    #[inline(always)]
    fn unit(bytes: &[u8; BYTES], _: &[u8; 0], out: &mut Unit<8>) {
        let (d, high) = (blocks::binary16(blocks::word(bytes, 0)), blocks::word(bytes, 2));
        for (group, codes) in out.values.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let scale = u16::from(blocks::nibble(&bytes[4..8], group)) | (high >> (2 * group) & 3) << 4;
            out.scales[group] = d * (f32::from(scale) - 32.0);
            out.mins[group] = 127.0 * out.scales[group];
            blocks::looked_up(&U, blocks::at::<16>(bytes, 8 + group * 16), codes);
        }
    }
}
