//! CPU twin. No sums over columns; the product is rounded before it is added.

use super::EwParams;
use crate::contract::CpuCall;

pub(super) fn run(params: &EwParams, call: &mut CpuCall<'_>) {
    let (a, b) = (call.ins[0], call.ins[1]);
    for row in 0..call.rows.len() {
        let numbers = call.outs[0].row(row).iter_mut().zip(a.row(row)).zip(b.row(row));
        numbers.for_each(|((y, a), b)| *y = a + params.scale * b);
    }
}
