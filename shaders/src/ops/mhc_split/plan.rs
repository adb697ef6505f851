//! Device form: a workgroup a row, with an invocation for each of up to 64 streams.

use super::MhcSplitParams;
use crate::device::{Arg, Dispatch, Extent, KernelText, Per, Plan, PlanCall};

pub(super) const KERNELS: &[KernelText] = &[KernelText { name: "mhc_split", text: include_str!("mhc_split.comp"), per: Per::One }];

const INVOCATIONS: u32 = 64;

pub(super) fn plan(params: &MhcSplitParams, _: &PlanCall<'_>) -> Result<Plan, String> {
    Ok(Plan::one(Dispatch {
        kernel: "mhc_split".into(),
        constants: vec![INVOCATIONS, params.streams, params.iterations],
        args: vec![Arg::In(0), Arg::Out(0), Arg::Out(1), Arg::Out(2), Arg::Vector(0), Arg::Vector(1), Arg::Float(params.eps)],
        grid: [Extent::ROWS, Extent::Fixed(1), Extent::Fixed(1)],
    }))
}
