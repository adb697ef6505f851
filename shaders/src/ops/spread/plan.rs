//! Device form: a number an invocation.

use crate::device::{Arg, Dispatch, Extent, KernelText, Per, Plan, PlanCall};

pub(super) const KERNELS: &[KernelText] = &[KernelText { name: "spread", text: include_str!("spread.comp"), per: Per::One }];

const INVOCATIONS: u32 = 128;

pub(super) fn plan(streams: u32, call: &PlanCall<'_>) -> Result<Plan, String> {
    let (last, width) = (call.ins.len() - 1, call.ins[1].width);
    Ok(Plan::one(Dispatch {
        kernel: "spread".into(),
        constants: vec![INVOCATIONS, streams, u32::from(last == 3)],
        args: vec![Arg::In(0), Arg::In(1), Arg::In(2), Arg::In(last), Arg::Out(0), Arg::Word(width)],
        grid: [Extent::of(call.outs[0].width, INVOCATIONS), Extent::ROWS, Extent::Fixed(1)],
    }))
}
