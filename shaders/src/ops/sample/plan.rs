//! Device form: a workgroup a row.

use crate::device::{Arg, Dispatch, Extent, KernelText, Per, Plan, PlanCall};

pub(super) const KERNELS: &[KernelText] = &[KernelText { name: "sample", text: include_str!("sample.comp"), per: Per::One }];

const FAULTS: &[&str] = &["a logit is not a number", "no logit is finite"];
/// Invocations that the kernel has memory for.
const INVOCATIONS: u32 = 1024;

pub(super) fn plan(vocab: usize, call: &PlanCall<'_>) -> Result<Plan, String> {
    let vocab = u32::try_from(vocab).map_err(|_| format!("{vocab} logits have no device form"))?;
    // Steps of a tree halve them. The result is the same for any number.
    let invocations = 1 << call.device.invocations.clamp(1, INVOCATIONS).ilog2();
    let dispatch = Dispatch {
        kernel: "sample".into(),
        constants: vec![invocations, vocab],
        args: vec![Arg::In(0), Arg::Out(0), Arg::Sampling],
        grid: [Extent::ROWS, Extent::Fixed(1), Extent::Fixed(1)],
    };
    Ok(Plan { faults: FAULTS, ..Plan::one(dispatch) })
}
