//! `mxfp4` as a panel: `u = 2 v + 12` with half of the scale, `m = 12 s`.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::fp4;

pub(super) struct Mxfp4;

pub(super) const PANEL: Panel = Panel::of::<Mxfp4, 128, 8, 8>();

/// Half of the scale of a code.
#[inline(always)]
pub(super) fn half_scale(code: u8) -> f32 {
    if code == 255 { f32::NAN } else { fp4::half_e8m0(code) }
}

impl Units<128, 8, 8> for Mxfp4 {
    const MOST: u8 = 24;
    #[cfg(target_arch = "x86_64")]
    const DIRECT: crate::fast::panel::Direct = crate::fast::gemv::registers::direct::<Self, 128, 8, 8>();

    #[inline(always)]
    fn unit(values: &[u8; 128], scales: &[u8; 8], out: &mut Unit<8>) {
        out.scales = scales.map(half_scale);
        out.mins = out.scales.map(|scale| 12.0 * scale);
        for (pair, byte) in out.values.as_chunks_mut::<2>().0.iter_mut().zip(values) {
            *pair = [fp4::U[usize::from(byte & 15)], fp4::U[usize::from(byte >> 4)]];
        }
    }
}
