//! Device form: a word of a row an invocation, from up to eight operands at once.

use crate::device::{Arg, Dispatch, Extent, KernelText, Per, Plan, PlanCall};

/// The kernel, also for ops that store their rows themselves.
pub(crate) const KERNEL: KernelText = KernelText { name: "append", text: include_str!("append.comp"), per: Per::One };

pub(super) const KERNELS: &[KernelText] = &[KERNEL];

/// What fault 0 of the kernel means.
pub(crate) const FAULT: &str = "no room for position {detail}";

const INVOCATIONS: u32 = 128;
/// Operands of a dispatch.
const TOGETHER: usize = 8;

pub(super) fn plan(stride: u32, call: &PlanCall<'_>) -> Plan {
    Plan { dispatches: store(call, call.ins.len(), stride), faults: &[FAULT], ..Plan::default() }
}

/// Stores the first `parts` operands side by side in the call's state.
pub(crate) fn store(call: &PlanCall<'_>, parts: usize, stride: u32) -> Vec<Dispatch> {
    let half = call.states[0].half;
    let mut dispatches = vec![];
    let mut first = 0;
    for at in (0..parts).step_by(TOGETHER) {
        let operands = at..parts.min(at + TOGETHER);
        let ends = operands.clone().scan(first, |end, part| {
            *end += call.ins[part].width;
            Some(*end)
        });
        let ends: Vec<u32> = ends.collect();
        let end = ends.last().copied().unwrap_or(first);
        let mut constants = vec![INVOCATIONS, stride, first];
        // Operands that there are none of end where the last one does, and are not read.
        constants.extend((0..TOGETHER).map(|part| ends.get(part).copied().unwrap_or(end)));
        let mut args = vec![Arg::StateMut(0)];
        args.extend(operands.map(Arg::In));
        (ends.len()..TOGETHER).for_each(|_| args.extend([Arg::Null, Arg::Word(0)]));
        let words = if half { end.div_ceil(2) - first / 2 } else { end - first };
        dispatches.push(Dispatch {
            kernel: KERNEL.name.into(),
            constants,
            args,
            grid: [Extent::of(words, INVOCATIONS), Extent::ROWS, Extent::Fixed(1)],
        });
        first = end;
    }
    dispatches
}
