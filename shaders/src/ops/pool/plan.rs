//! Device form: stores the rows of the step, as `append` does; then a number an invocation, which reads what is stored of its group.

use super::{PoolMode, PoolParams};
use crate::device::{Arg, Dispatch, Extent, KernelText, Per, Plan, PlanCall};
use crate::ops::append;

pub(super) const KERNELS: &[KernelText] =
    &[append::plan::KERNEL, KernelText { name: "pool", text: include_str!("pool.comp"), per: Per::One }];

const FAULTS: &[&str] = &[append::plan::FAULT, "the row at position {detail} of the conversation is not stored"];

const INVOCATIONS: u32 = 64;

pub(super) fn plan(params: &PoolParams, call: &PlanCall<'_>) -> Result<Plan, String> {
    if call.states[0].half {
        return Err("its state is stored as binary16".into());
    }
    let (width, out_width) = (call.ins[0].width, call.outs[0].width);
    let mean = u32::from(params.mode == PoolMode::Mean);
    let ape = if params.ape { Arg::Vector(0) } else { Arg::Null };
    let mut dispatches = append::plan::store(call, call.ins.len(), 1);
    dispatches.push(Dispatch {
        kernel: "pool".into(),
        constants: vec![INVOCATIONS, width, out_width, params.ratio, mean, u32::from(params.overlap), u32::from(params.ape)],
        args: vec![Arg::Out(0), ape, Arg::State(0)],
        grid: [Extent::of(out_width, INVOCATIONS), Extent::ROWS, Extent::Fixed(1)],
    });
    Ok(Plan { dispatches, faults: FAULTS, ..Plan::default() })
}
