//! CPU twin. Order: layer's mean is a sum as in [`crate::sums`] over the group's width, and `x - mean` is rounded; the sum of squares as
//! in [`crate::sums`], divided by the width for rms and layer; then `((v * (1 / root)) * w + bias) * scale`, each step rounded.

use super::{EpsPlace, NormKind, NormParams, Weighting};
use crate::contract::CpuCall;
use crate::sums;

#[inline(always)]
pub(super) fn run(params: &NormParams, call: &mut CpuCall<'_>) {
    let group = call.ins[0].width() / params.groups as usize;
    let mut weights: Vec<Vec<f32>> = (0..call.weights.len()).map(|index| call.weight(index).decode()).collect();
    if params.zero_centred {
        weights[0].iter_mut().for_each(|weight| *weight += 1.0);
    }
    for row in 0..call.rows.len() {
        let groups = call.ins[0].row(row).chunks_exact(group).zip(call.outs[0].row(row).chunks_exact_mut(group));
        for (index, (x, y)) in groups.enumerate() {
            y.copy_from_slice(x);
            divide(params, y);
            let start = if params.weighting == Weighting::Full { index * group } else { 0 };
            if let Some(weight) = weights.first() {
                y.iter_mut().zip(&weight[start..]).for_each(|(y, weight)| *y *= weight);
            }
            if let Some(bias) = weights.get(1) {
                y.iter_mut().zip(&bias[start..]).for_each(|(y, bias)| *y += bias);
            }
            y.iter_mut().for_each(|y| *y *= params.scale);
        }
    }
}

/// A group, centred where the kind says so, times the reciprocal of its root.
#[inline(always)]
fn divide(params: &NormParams, y: &mut [f32]) {
    let width = y.len() as f32;
    if params.kind == NormKind::Layer {
        let mean = sums::sum(y) / width;
        y.iter_mut().for_each(|y| *y -= mean);
    }
    let squares = sums::dot(y, y);
    let size = if params.kind == NormKind::L2 { squares } else { squares / width };
    let root = match params.eps_place {
        EpsPlace::Inside => (size + params.eps).sqrt(),
        EpsPlace::Outside => size.sqrt() + params.eps,
    };
    let factor = 1.0 / root;
    y.iter_mut().for_each(|y| *y *= factor);
}
