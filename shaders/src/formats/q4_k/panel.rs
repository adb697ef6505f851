//! `q4_k` as a panel: `s = d * S[g]`, `m = dmin * M[g]`.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::{blocks, kquant};

use super::BYTES;

pub(super) struct Q4K;

pub(super) const PANEL: Panel = Panel::of::<Q4K, BYTES, 0, 8>();

impl Units<BYTES, 0, 8> for Q4K {
    const MOST: u8 = 15;
    #[cfg(target_arch = "x86_64")]
    const DIRECT: crate::fast::panel::Direct = crate::fast::gemv::registers::direct::<Self, BYTES, 0, 8>();

    #[inline(always)]
    fn unit(bytes: &[u8; BYTES], _: &[u8; 0], out: &mut Unit<8>) {
        kquant::scales_mins(bytes, out);
        for (pair, out) in bytes[16..].as_chunks::<32>().0.iter().zip(out.values.as_chunks_mut::<64>().0) {
            blocks::codes(pair, out);
        }
    }
}
