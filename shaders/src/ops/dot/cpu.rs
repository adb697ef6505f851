//! CPU twin. Order: each group is one inner product as in [`crate::sums`], then the factor.

use super::DotParams;
use crate::contract::CpuCall;
use crate::sums;

pub(super) fn run(params: &DotParams, call: &mut CpuCall<'_>) {
    let (a, b) = (call.ins[0], call.ins[1]);
    let group = a.width() / params.groups as usize;
    for row in 0..call.rows.len() {
        let pairs = a.row(row).chunks_exact(group).zip(b.row(row).chunks_exact(group));
        call.outs[0].row(row).iter_mut().zip(pairs).for_each(|(y, (a, b))| *y = params.scale * sums::dot(a, b));
    }
}
