//! CPU twin. Order: each output is one inner product as in [`crate::sums`]. A weight row is decoded once for all rows of the step, which
//! changes no bit.

use crate::contract::CpuCall;
use crate::formats::WeightView;
use crate::sums;

pub(super) fn run(call: &mut CpuCall<'_>) {
    let weight = call.weight(0);
    let (x, y) = (call.ins[0], &mut call.outs[0]);
    call.scratch.resize(weight.cols(), 0.0);
    for out in 0..weight.rows() {
        weight.decode_row(out, call.scratch);
        for row in 0..call.rows.len() {
            y.row(row)[out] = sums::dot(call.scratch, x.row(row));
        }
    }
}

/// `y = W x` for one row; `scratch` is left dirty.
pub(crate) fn apply(weight: WeightView<'_>, x: &[f32], y: &mut [f32], scratch: &mut Vec<f32>) {
    scratch.resize(weight.cols(), 0.0);
    for (out, y) in y.iter_mut().enumerate() {
        weight.decode_row(out, scratch);
        *y = sums::dot(scratch, x);
    }
}
