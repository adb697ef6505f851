//! What kernels report as faults, as an error says it.

use coli_base::Error;

use super::frame::PlannedOp;
use super::words::NO_FAULT;

/// Rows of a step that a report can tell apart.
const ROW_BITS: u32 = 19;
/// Ops of a frame that a report can tell apart.
pub(super) const OPS_MAX: usize = (1 << (32 - ROW_BITS)) - 1;

/// The error that a frame's first words report, `None` where they report none.
pub(super) fn reported(words: &[u32], ops: &[PlannedOp]) -> Option<Error> {
    let [key, code, detail, ..] = *words else { return None };
    if key == NO_FAULT {
        return None;
    }
    let row = key & ((1 << ROW_BITS) - 1);
    let Some(op) = ops.get((key >> ROW_BITS) as usize) else {
        return Some(Error::run("a kernel reported a fault of an op that there is not"));
    };
    let text = op.plan.faults.get(code as usize).copied().unwrap_or("a kernel reported a fault that it does not name");
    let text = text.replace("{row}", &row.to_string()).replace("{detail}", &(detail as i32).to_string());
    Some(Error::run(format!("{} op {} {}: {text}", op.segment, op.index, op.id)))
}
