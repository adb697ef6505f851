//! `q5_k` as a panel: `s = d * S[g]`, `m = dmin * M[g]`.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::{blocks, kquant};

use super::BYTES;

pub(super) struct Q5K;

pub(super) const PANEL: Panel = Panel::of::<Q5K, BYTES, 0, 8>();

impl Units<BYTES, 0, 8> for Q5K {
    const MOST: u8 = 31;
    #[cfg(target_arch = "x86_64")]
    const DIRECT: crate::fast::panel::Direct = crate::fast::gemv::registers::direct::<Self, BYTES, 0, 8>();

    #[inline(always)]
    fn unit(bytes: &[u8; BYTES], _: &[u8; 0], out: &mut Unit<8>) {
        kquant::scales_mins(bytes, out);
        let high: &[u8; 32] = blocks::at(bytes, 16);
        for (group, (pair, out)) in bytes[48..].as_chunks::<32>().0.iter().zip(out.values.as_chunks_mut::<64>().0).enumerate() {
            for at in 0..32 {
                out[at] = pair[at] & 15 | (high[at] >> (2 * group) & 1) << 4;
                out[at + 32] = pair[at] >> 4 | (high[at] >> (2 * group + 1) & 1) << 4;
            }
        }
    }
}
