//! CPU twin: copies words. No sums.

use crate::contract::CpuCall;

pub(super) fn run(call: &mut CpuCall<'_>) {
    for row in 0..call.rows.len() {
        let mut rest = call.outs[0].ints(row);
        for part in call.ins {
            let (head, tail) = rest.split_at_mut(part.width());
            head.copy_from_slice(part.ints(row));
            rest = tail;
        }
    }
}
