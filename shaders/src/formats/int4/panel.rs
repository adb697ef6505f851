//! Four-bit whole numbers as panels: `u = v + 8`, `m = 8 s`.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::{blocks, scales};

/// Pairs that store `v + ZERO`, with so many bytes of scales for 256 columns, or one scale a row.
pub(super) struct Pairs<const S: usize, const ZERO: u8>;

/// Halves of groups.
pub(super) struct Planar;

pub(super) const ROW: Panel = Panel::of::<Pairs<4, 8>, 128, 4, 8>();
pub(super) const G64: Panel = Panel::of::<Pairs<16, 8>, 128, 16, 8>();
pub(super) const ROW_TC: Panel = Panel::of::<Pairs<4, 0>, 128, 4, 8>();
pub(super) const G64_TC: Panel = Panel::of::<Pairs<16, 0>, 128, 16, 8>();
pub(super) const PLANAR: Panel = Panel::of::<Planar, 128, 16, 8>();

impl<const S: usize, const ZERO: u8> Units<128, S, 8> for Pairs<S, ZERO> {
    const MOST: u8 = 15;
    const PER_ROW: bool = S == 4;
    #[cfg(target_arch = "x86_64")]
    const DIRECT: crate::fast::panel::Direct = crate::fast::gemv::registers::direct::<Self, 128, S, 8>();

    #[inline(always)]
    fn unit(values: &[u8; 128], scales: &[u8; S], out: &mut Unit<8>) {
        scales::groups(scales, 8.0, out);
        // Two's complement and an offset by 8 differ in the highest bit.
        let other = 8 - ZERO;
        for (pair, byte) in out.values.as_chunks_mut::<2>().0.iter_mut().zip(values) {
            *pair = [byte & 15 ^ other, byte >> 4 ^ other];
        }
    }
}

impl Units<128, 16, 8> for Planar {
    const MOST: u8 = 15;
    #[cfg(target_arch = "x86_64")]
    const DIRECT: crate::fast::panel::Direct = crate::fast::gemv::registers::direct::<Self, 128, 16, 8>();

    #[inline(always)]
    fn unit(values: &[u8; 128], scales: &[u8; 16], out: &mut Unit<8>) {
        scales::groups(scales, 8.0, out);
        for (plane, out) in values.as_chunks::<32>().0.iter().zip(out.values.as_chunks_mut::<64>().0) {
            blocks::codes(plane, out);
        }
    }
}
