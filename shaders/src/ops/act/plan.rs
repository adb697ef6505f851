//! Device form: a number an invocation.

use super::ActParams;
use crate::device::{Arg, Dispatch, Extent, KernelText, Per, Plan, PlanCall};

pub(super) const KERNELS: &[KernelText] = &[KernelText { name: "act", text: include_str!("act.comp"), per: Per::One }];

const INVOCATIONS: u32 = 128;

pub(super) fn plan(params: &ActParams, call: &PlanCall<'_>) -> Result<Plan, String> {
    let (width, weighted) = (call.outs[0].width, !call.weights.is_empty());
    // Without a weight any address will do; it is not read.
    let w = if weighted { Arg::Vector(0) } else { Arg::Null };
    Ok(Plan::one(Dispatch {
        kernel: "act".into(),
        constants: vec![INVOCATIONS, params.kind as u32, u32::from(weighted)],
        args: vec![
            Arg::In(0),
            Arg::Out(0),
            w,
            Arg::Word(width),
            Arg::Float(params.scale),
            Arg::Float(params.add),
            Arg::Float(params.limit),
        ],
        grid: [Extent::of(width, INVOCATIONS), Extent::ROWS, Extent::Fixed(1)],
    }))
}
