//! `int8-row` and `int8-g64` as panels: `u = q + 128`, `m = 128 s`.

use crate::fast::panel::{Panel, Unit, Units};
use crate::formats::scales;

/// With so many bytes of scales for 256 columns, or one scale a row.
pub(super) struct Int8<const S: usize>;

pub(super) const ROW: Panel = Panel::of::<Int8<4>, 256, 4, 8>();
pub(super) const G64: Panel = Panel::of::<Int8<16>, 256, 16, 8>();

impl<const S: usize> Units<256, S, 8> for Int8<S> {
    const MOST: u8 = 255;
    const PER_ROW: bool = S == 4;
    #[cfg(target_arch = "x86_64")]
    const DIRECT: crate::fast::panel::Direct = crate::fast::gemv::registers::direct::<Self, 256, S, 8>();

    #[inline(always)]
    fn unit(values: &[u8; 256], scales: &[u8; S], out: &mut Unit<8>) {
        scales::groups(scales, 128.0, out);
        out.values = values.map(|code| code ^ 0x80);
    }
}
