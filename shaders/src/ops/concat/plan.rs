//! Device form: a word an invocation, as many parts in a dispatch as push constants have room for.

use crate::device::{Arg, Dispatch, Extent, KernelText, Per, Plan, PlanCall};

pub(super) const KERNELS: &[KernelText] = &[KernelText { name: "concat", text: include_str!("concat.comp"), per: Per::One }];

const INVOCATIONS: u32 = 128;
/// Parts of a dispatch.
const PARTS: usize = 8;

pub(super) fn plan(call: &PlanCall<'_>) -> Result<Plan, String> {
    let parts: Vec<usize> = (0..call.ins.len()).collect();
    let mut end = 0;
    let mut dispatch = |parts: &[usize]| {
        let first = end;
        let mut constants = vec![INVOCATIONS, first];
        constants.extend(parts.iter().map(|part| {
            end += call.ins[*part].width;
            end
        }));
        constants.resize(2 + PARTS, end);
        // What is left over is not read.
        let ins = (0..PARTS).map(|part| Arg::In(parts[part.min(parts.len() - 1)]));
        Dispatch {
            kernel: "concat".into(),
            constants,
            args: [Arg::Out(0)].into_iter().chain(ins).collect(),
            grid: [Extent::of(end - first, INVOCATIONS), Extent::ROWS, Extent::Fixed(1)],
        }
    };
    Ok(Plan { dispatches: parts.chunks(PARTS).map(&mut dispatch).collect(), ..Plan::default() })
}
