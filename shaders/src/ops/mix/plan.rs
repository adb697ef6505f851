//! Device form: a number an invocation.

use crate::device::{Arg, Dispatch, Extent, KernelText, Per, Plan, PlanCall};

pub(super) const KERNELS: &[KernelText] = &[KernelText { name: "mix", text: include_str!("mix.comp"), per: Per::One }];

const INVOCATIONS: u32 = 128;

pub(super) fn plan(streams: u32, call: &PlanCall<'_>) -> Result<Plan, String> {
    let width = call.outs[0].width;
    let weights = call.ins.len() - 1;
    Ok(Plan::one(Dispatch {
        kernel: "mix".into(),
        constants: vec![INVOCATIONS, streams, u32::from(weights > 0)],
        args: vec![Arg::In(0), Arg::In(weights), Arg::Out(0), Arg::Word(width)],
        grid: [Extent::of(width, INVOCATIONS), Extent::ROWS, Extent::Fixed(1)],
    }))
}
