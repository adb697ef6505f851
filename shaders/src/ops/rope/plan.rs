//! Device form: a number an invocation; cosines and sines come from the host.

use std::sync::Arc;

use coli_plugin_api::params::Params as _;

use super::angles::Angles;
use super::{RopeParams, RopeStyle};
use crate::device::{Arg, Dispatch, Extent, KernelText, Per, Plan, PlanCall, RowTable};

pub(super) const KERNELS: &[KernelText] = &[KernelText { name: "rope", text: include_str!("rope.comp"), per: Per::One }];

const INVOCATIONS: u32 = 128;

pub(super) fn plan(params: &RopeParams, angles: &Angles, call: &PlanCall<'_>) -> Result<Plan, String> {
    let (width, pairs) = (call.outs[0].width, (params.end - params.start) / 2);
    let dispatch = Dispatch {
        kernel: "rope".into(),
        constants: vec![INVOCATIONS, u32::from(params.style == RopeStyle::Half), params.head_width, params.start, pairs],
        args: vec![Arg::In(0), Arg::Out(0), Arg::Table(0), Arg::Word(width)],
        grid: [Extent::of(width, INVOCATIONS), Extent::ROWS, Extent::Fixed(1)],
    };
    Ok(Plan { tables: vec![table(params, angles)], ..Plan::one(dispatch) })
}

/// The cosines of a position's pairs, then their sines.
fn table(params: &RopeParams, angles: &Angles) -> RowTable {
    let (angles, pairs) = (angles.clone(), angles.pairs());
    let fill = move |position: &[i32], entry: &mut [f32]| {
        let (cosines, sines) = entry.split_at_mut(pairs);
        let of_pairs = position.first().into_iter().flat_map(|position| angles.at(*position));
        of_pairs.zip(cosines.iter_mut().zip(sines)).for_each(|(turn, (cos, sin))| (*cos, *sin) = turn);
    };
    RowTable { key: key(params), input: 1, width: params.end - params.start, fill: Arc::new(fill) }
}

/// What the angles depend on: how the pairs lie in a head is not of it.
fn key(params: &RopeParams) -> Vec<u8> {
    let turned = RopeParams { style: RopeStyle::Half, head_width: 2, start: 0, end: params.end - params.start, ..*params };
    [b"rope", &*turned.encode()].concat()
}
