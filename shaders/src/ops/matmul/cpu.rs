//! CPU twin. Order: each output is one inner product as in [`crate::sums`], then the bias, then the function. A weight row is decoded once
//! for all rows of the step, which changes no bit.

use super::MatmulAct;
use crate::contract::CpuCall;
use crate::formats::WeightView;
use crate::ops::act::functions::{gelu, relu, sigmoid, silu};
use crate::sums;

pub(super) fn run(act: MatmulAct, call: &mut CpuCall<'_>) {
    let weight = call.weight(0);
    let bias = (call.weights.len() > 1).then(|| call.weight(1).decode());
    let (x, y) = (call.ins[0], &mut call.outs[0]);
    call.scratch.resize(weight.cols(), 0.0);
    for out in 0..weight.rows() {
        weight.decode_row(out, call.scratch);
        for row in 0..call.rows.len() {
            let product = sums::dot(call.scratch, x.row(row));
            y.row(row)[out] = apply_act(act, bias.as_ref().map_or(product, |bias| product + bias[out]));
        }
    }
}

pub(super) fn apply_act(act: MatmulAct, x: f32) -> f32 {
    match act {
        MatmulAct::None => x,
        MatmulAct::Silu => silu(x),
        MatmulAct::Gelu => gelu(x),
        MatmulAct::Relu => relu(x),
        MatmulAct::Sigmoid => sigmoid(x),
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
