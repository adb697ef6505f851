//! The common int8 form of weights: `w = s * u - m`.
//!
//! A format decodes a unit of 256 columns at a time ([`Units`]), in plain Rust that compiles to the instructions of each [`Level`]. Where
//! that is not fast enough its folder has a decoder in registers too, for kernels that need no panel.
#![allow(unsafe_code)]

use std::ops::Range;

use super::acts::UNIT;
use super::{Acts, GROUP, Level};
use crate::formats::WeightView;

/// How a format becomes a panel. Formats of floats have none.
#[derive(Debug, Clone, Copy)]
pub struct Panel {
    /// Numbers that share a scale and a minimum: 16 or 32. A format with wider groups repeats them.
    pub group: usize,
    /// The largest byte: 127 or less spares kernels without VNNI a widening.
    pub most: u8,
    /// From a row's values and its row of scales.
    pub decode: fn(&[u8], &[u8], &mut PanelRow<'_>),
    /// The same with the instructions of a level that the machine has.
    pub(crate) decode_at: fn(Level, &[u8], &[u8], &mut PanelRow<'_>),
    /// Its own kernels for single tokens.
    pub(crate) direct: Direct,
}

/// A row of a panel, as long as the row with its padding. Padding has any byte and any finite scale.
#[derive(Debug)]
pub struct PanelRow<'a> {
    /// The bytes `u`, in the order of the columns, padded to a multiple of 64.
    pub values: &'a mut [u8],
    /// The scales `s`, one a group.
    pub scales: &'a mut [f32],
    /// The minimums `m`, one a group.
    pub mins: &'a mut [f32],
}

/// A kernel that needs no panel; `super::gemv` says what it computes, and has checked the sizes. It asserts that its level is here.
pub(crate) type Gemv = fn(&WeightView<'_>, Range<usize>, &Acts, Range<usize>, &mut [f32]);

/// From a row's values and its row of scales, with AVX2, FMA and F16C, which the machine must have.
///
/// # Safety
/// The machine has the instructions that it is compiled for.
pub(crate) type Decode = unsafe fn(&[u8], &[u8], &mut PanelRow<'_>);

/// Kernels that need no panel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Direct {
    pub(crate) avx512: Option<Gemv>,
    pub(crate) avx2: Option<Gemv>,
    /// A panel's decoder for either, where the compiler's own is slower.
    pub(crate) decode: Option<Decode>,
}

impl Direct {
    /// None.
    pub(crate) const NONE: Self = Self { avx512: None, avx2: None, decode: None };
}

/// A unit of a panel: 256 columns in `G` groups.
pub(crate) struct Unit<const G: usize> {
    pub(crate) values: [u8; UNIT],
    pub(crate) scales: [f32; G],
    pub(crate) mins: [f32; G],
}

/// A format by units: `B` bytes of values and `S` bytes of scales apart become `G` groups of 16 or 32 columns.
pub(crate) trait Units<const B: usize, const S: usize, const G: usize> {
    /// The largest byte.
    const MOST: u8;
    /// Whether all units of a row have the same scales: a row has only `S` bytes of them.
    const PER_ROW: bool = false;
    /// Kernels that need no panel.
    const DIRECT: Direct = Direct::NONE;

    /// Decodes a unit.
    fn unit(values: &[u8; B], scales: &[u8; S], out: &mut Unit<G>);
}

/// A row by units. Where the last one is short, zeros follow it.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a, const B: usize, const S: usize> {
    /// Whole units.
    pub(crate) values: &'a [[u8; B]],
    /// As many, or one where all are the same.
    pub(crate) scales: &'a [[u8; S]],
    /// What is no whole unit.
    rest: (&'a [u8], &'a [u8]),
}

impl<'a, const B: usize, const S: usize> Row<'a, B, S> {
    #[inline(always)]
    pub(crate) fn new(values: &'a [u8], scales: &'a [u8], per_row: bool) -> Self {
        // A unit is whole where its values and its scales are.
        let scaled = if per_row || S == 0 { usize::MAX } else { scales.len() / S.max(1) };
        let whole = (values.len() / B).min(scaled);
        let groups = if per_row { scales.len() / S.max(1) } else { whole };
        let (scales, others) = scales.split_at(groups * S);
        let (values, rest) = values.split_at(whole * B);
        // SAFETY: there are `groups` times `S` bytes, and a `u8` may be anywhere.
        let scales = unsafe { std::slice::from_raw_parts(scales.as_ptr().cast(), groups) };
        Self { values: values.as_chunks().0, scales, rest: (rest, others) }
    }

    /// A unit; the one after the whole ones is [`Self::tail`].
    #[inline(always)]
    pub(crate) fn unit<'b>(&self, unit: usize, tail: &'b ([u8; B], [u8; S])) -> (&'b [u8; B], &'b [u8; S])
    where
        'a: 'b,
    {
        match self.values.get(unit) {
            // Where the scales are one, they are those of all units.
            Some(values) => (values, &self.scales[unit.min(self.scales.len() - 1)]),
            None => (&tail.0, &tail.1),
        }
    }

    /// What is left of a unit, and zeros.
    pub(crate) fn tail(&self, per_row: bool) -> ([u8; B], [u8; S]) {
        let (mut values, mut scales) = ([0; B], [0; S]);
        values[..self.rest.0.len()].copy_from_slice(self.rest.0);
        scales[..self.rest.1.len()].copy_from_slice(self.rest.1);
        (values, if per_row { self.scales.first().copied().unwrap_or(scales) } else { scales })
    }
}

impl Panel {
    /// The panel of a format.
    pub(crate) const fn of<U: Units<B, S, G>, const B: usize, const S: usize, const G: usize>() -> Self {
        const { assert!(G * GROUP == UNIT || G * GROUP == 2 * UNIT) };
        let best = |values: &[u8], scales: &[u8], out: &mut PanelRow<'_>| decode::<U, B, S, G>(Level::best(), values, scales, out);
        Self { group: UNIT / G, most: U::MOST, decode: best, decode_at: decode::<U, B, S, G>, direct: U::DIRECT }
    }
}

fn decode<U: Units<B, S, G>, const B: usize, const S: usize, const G: usize>(
    level: Level,
    values: &[u8],
    scales: &[u8],
    out: &mut PanelRow<'_>,
) {
    assert!(level.is_here(), "{level:?}");
    match level {
        Level::Portable => units::<U, B, S, G>(values, scales, out),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::Avx512 if U::DIRECT.decode.is_some() => {
            if let Some(decode) = U::DIRECT.decode {
                // SAFETY: the level is here.
                unsafe { decode(values, scales, out) };
            }
        }
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is here.
        Level::Avx512 => unsafe { units_avx512::<U, B, S, G>(values, scales, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is here.
        Level::Avx2 => unsafe { units_avx2::<U, B, S, G>(values, scales, out) },
        #[cfg(not(target_arch = "x86_64"))]
        Level::Avx2 | Level::Avx512 => unreachable!("a level of another processor"),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx2,fma,f16c")]
fn units_avx512<U: Units<B, S, G>, const B: usize, const S: usize, const G: usize>(v: &[u8], s: &[u8], out: &mut PanelRow<'_>) {
    units::<U, B, S, G>(v, s, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn units_avx2<U: Units<B, S, G>, const B: usize, const S: usize, const G: usize>(v: &[u8], s: &[u8], out: &mut PanelRow<'_>) {
    units::<U, B, S, G>(v, s, out);
}

#[inline(always)]
fn units<U: Units<B, S, G>, const B: usize, const S: usize, const G: usize>(values: &[u8], scales: &[u8], out: &mut PanelRow<'_>) {
    let row = Row::<B, S>::new(values, scales, U::PER_ROW);
    let tail = row.tail(U::PER_ROW);
    let mut unit = Unit { values: [0; UNIT], scales: [0.0; G], mins: [0.0; G] };
    let (bytes, groups) = (out.values.chunks_mut(UNIT), out.scales.chunks_mut(G).zip(out.mins.chunks_mut(G)));
    for (index, (bytes, (scales, mins))) in bytes.zip(groups).enumerate() {
        let (v, s) = row.unit(index, &tail);
        U::unit(v, s, &mut unit);
        put(bytes, &unit.values);
        put(scales, &unit.scales);
        put(mins, &unit.mins);
    }
}

/// Copies as much as there is room for; whole where there is room for all.
#[inline(always)]
pub(crate) fn put<T: Copy, const N: usize>(out: &mut [T], from: &[T; N]) {
    match out.first_chunk_mut() {
        Some(out) => *out = *from,
        None => out.copy_from_slice(&from[..out.len()]),
    }
}
