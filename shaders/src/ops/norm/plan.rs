//! Device form: a team of 8 invocations a group, or a workgroup for a long one.

use super::{EpsPlace, NormParams};
use crate::device::{Arg, Dispatch, Extent, KernelText, Per, Plan, PlanCall};

pub(super) const KERNELS: &[KernelText] = &[KernelText { name: "norm", text: include_str!("norm.comp"), per: Per::One }];

const TEAM: u32 = 8;
/// Columns beyond which a team is slower than a workgroup.
const LONG: u32 = 512;

pub(super) fn plan(params: &NormParams, call: &PlanCall<'_>) -> Result<Plan, String> {
    let groups = params.groups;
    let width = call.ins[0].width / groups;
    let wide = width > LONG || groups == 1;
    let invocations = if wide { call.device.invocations.min(256) } else { 128 };
    let grid = if wide { Extent::Fixed(groups) } else { Extent::of(groups, invocations / TEAM) };
    // Without a weight or a bias any address will do; it is not read.
    let vector = |index: usize| if index < call.weights.len() { Arg::Vector(index) } else { Arg::Null };
    Ok(Plan::one(Dispatch {
        kernel: "norm".into(),
        constants: vec![
            invocations,
            width,
            groups,
            u32::from(wide),
            params.kind as u32,
            params.weighting as u32,
            u32::from(params.zero_centred),
            u32::from(call.weights.len() > 1),
            u32::from(params.eps_place == EpsPlace::Outside),
        ],
        args: vec![Arg::In(0), Arg::Out(0), vector(0), vector(1), Arg::Float(params.eps), Arg::Float(params.scale)],
        grid: [grid, Extent::ROWS, Extent::Fixed(1)],
    }))
}
