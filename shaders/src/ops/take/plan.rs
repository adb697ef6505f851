//! Device form: a word an invocation.

use crate::device::{Arg, Dispatch, Extent, KernelText, Per, Plan, PlanCall};

pub(super) const KERNELS: &[KernelText] = &[KernelText { name: "take", text: include_str!("take.comp"), per: Per::One }];

const INVOCATIONS: u32 = 128;

pub(super) fn plan(call: &PlanCall<'_>) -> Result<Plan, String> {
    let width = call.outs[0].width;
    Ok(Plan::one(Dispatch {
        kernel: "take".into(),
        constants: vec![INVOCATIONS],
        args: vec![Arg::In(0), Arg::Out(0), Arg::Word(width)],
        grid: [Extent::of(width, INVOCATIONS), Extent::ROWS, Extent::Fixed(1)],
    }))
}
