//! CPU twin: copies. No sums. Ids are copied as the bits that they are.

use crate::contract::CpuCall;

pub(super) fn run(call: &mut CpuCall<'_>) {
    for (row, at) in call.rows.iter().enumerate() {
        call.outs[0].ints(row).copy_from_slice(call.ins[0].ints(at.step_row as usize));
    }
}
