//! Device form: a number an invocation.

use super::EwParams;
use crate::device::{Arg, Dispatch, Extent, KernelText, Per, Plan, PlanCall};

pub(super) const KERNELS: &[KernelText] = &[KernelText { name: "ew", text: include_str!("ew.comp"), per: Per::One }];

const INVOCATIONS: u32 = 128;

pub(super) fn plan(params: &EwParams, call: &PlanCall<'_>) -> Result<Plan, String> {
    let width = call.outs[0].width;
    // A width of 0 has no groups to divide by.
    let group = (width / params.groups).max(1);
    Ok(Plan::one(Dispatch {
        kernel: "ew".into(),
        constants: vec![INVOCATIONS, params.kind as u32, params.repeat as u32, group],
        args: vec![Arg::In(0), Arg::In(1), Arg::In(call.ins.len() - 1), Arg::Out(0), Arg::Word(width), Arg::Float(params.scale)],
        grid: [Extent::of(width, INVOCATIONS), Extent::ROWS, Extent::Fixed(1)],
    }))
}
