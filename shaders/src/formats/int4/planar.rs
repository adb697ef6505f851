//! `int4-g64-planar`: the diagram is in the parent module.

use super::super::{Entry, scales};
use super::number;

const GROUP: usize = 64;
const PLANE: usize = GROUP / 2;
const ZERO: u8 = 8;
const ZEROS: u8 = 0x88;

const _: () = assert!(PLANE == 32 && ZEROS == ZERO << 4 | ZERO);

pub(in super::super) static ENTRY: Entry = Entry {
    panel: Some(super::panel::PLANAR),
    scale_bytes: scales::bytes::<scales::F32, GROUP>,
    encode: Some(encode),
    ..Entry::plain("int4-g64-planar", include_str!("planar.glsl"), |cols| cols.div_ceil(GROUP).checked_mul(PLANE), decode)
};

fn decode(values: &[u8], scales: &[u8], out: &mut [f32]) {
    for (group, bytes) in out.chunks_mut(GROUP).zip(values.chunks_exact(PLANE)) {
        let codes = bytes.iter().copied().chain(bytes.iter().map(|byte| byte >> 4));
        group.iter_mut().zip(codes).for_each(|(value, code)| *value = number::<ZERO>(code));
    }
    scales::apply::<scales::F32, GROUP>(scales, out);
}

fn encode(row: &[f32], values: &mut [u8], scales: &mut [u8]) {
    values.fill(ZEROS);
    scales::quantize::<GROUP>(row, 7, scales, |at, whole| {
        let (byte, shift) = (at / GROUP * PLANE + at % PLANE, at % GROUP / PLANE * 4);
        values[byte] = values[byte] & !(15 << shift) | ((whole + 8) as u8) << shift;
    });
}
