//! Device form: stores the rows of the step, as `append` does; then a number an invocation, whose taps read what is stored.

use super::{ShortConvAct, ShortConvParams};
use crate::device::{Arg, Dispatch, Extent, KernelText, Per, Plan, PlanCall};
use crate::ops::append;

pub(super) const KERNELS: &[KernelText] =
    &[append::plan::KERNEL, KernelText { name: "short_conv", text: include_str!("short_conv.comp"), per: Per::One }];

const FAULTS: &[&str] = &[append::plan::FAULT, "the row at position {detail} of the conversation is not stored"];

const INVOCATIONS: u32 = 128;

pub(super) fn plan(params: &ShortConvParams, call: &PlanCall<'_>) -> Result<Plan, String> {
    if call.states[0].half {
        return Err("its state is stored as binary16".into());
    }
    let width = call.ins[0].width;
    let mut dispatches = append::plan::store(call, 1, 1);
    let silu = u32::from(params.act == ShortConvAct::Silu);
    dispatches.push(Dispatch {
        kernel: "short_conv".into(),
        constants: vec![INVOCATIONS, width, params.taps, params.dilation, silu, u32::from(params.residual)],
        args: vec![Arg::In(0), Arg::Out(0), Arg::Vector(0), Arg::State(0)],
        grid: [Extent::of(width, INVOCATIONS), Extent::ROWS, Extent::Fixed(1)],
    });
    Ok(Plan { dispatches, faults: FAULTS, ..Plan::default() })
}
