//! Device form: a number an invocation.

use super::GluParams;
use crate::device::{Arg, Dispatch, Extent, KernelText, Per, Plan, PlanCall};

pub(super) const KERNELS: &[KernelText] = &[KernelText { name: "glu", text: include_str!("glu.comp"), per: Per::One }];

const INVOCATIONS: u32 = 128;

pub(super) fn plan(params: GluParams, call: &PlanCall<'_>) -> Result<Plan, String> {
    let width = call.outs[0].width;
    Ok(Plan::one(Dispatch {
        kernel: "glu".into(),
        constants: vec![INVOCATIONS, params.kind as u32],
        args: vec![Arg::In(0), Arg::In(1), Arg::Out(0), Arg::Word(width), Arg::Float(params.limit)],
        grid: [Extent::of(width, INVOCATIONS), Extent::ROWS, Extent::Fixed(1)],
    }))
}
