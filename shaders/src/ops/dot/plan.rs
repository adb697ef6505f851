//! Device form: a team of 8 invocations a group, or a workgroup for a long one.

use super::DotParams;
use crate::device::{Arg, Dispatch, Extent, KernelText, Per, Plan, PlanCall};

pub(super) const KERNELS: &[KernelText] = &[KernelText { name: "dot", text: include_str!("dot.comp"), per: Per::One }];

const TEAM: u32 = 8;
/// Columns beyond which a team is slower than a workgroup.
const LONG: u32 = 512;

pub(super) fn plan(params: &DotParams, call: &PlanCall<'_>) -> Result<Plan, String> {
    let groups = params.groups;
    let width = call.ins[0].width / groups;
    let wide = width > LONG;
    let invocations = if wide { call.device.invocations.min(256) } else { 128 };
    let grid = if wide { Extent::Fixed(groups) } else { Extent::of(groups, invocations / TEAM) };
    Ok(Plan::one(Dispatch {
        kernel: "dot".into(),
        constants: vec![invocations, width, groups, u32::from(wide)],
        args: vec![Arg::In(0), Arg::In(1), Arg::Out(0), Arg::Float(params.scale)],
        grid: [grid, Extent::ROWS, Extent::Fixed(1)],
    }))
}
