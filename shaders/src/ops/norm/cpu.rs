//! CPU twin. Order: the sum of squares as in [`crate::sums`]; then `(x * (1 / root)) * w * scale`, each product rounded.

use super::{NormParams, Weighting};
use crate::contract::CpuCall;
use crate::sums;

pub(super) fn run(params: &NormParams, call: &mut CpuCall<'_>) {
    let width = call.ins[0].width();
    let group = width / params.groups as usize;
    call.scratch.clear();
    if params.weighting != Weighting::None {
        let weight = call.weight(0);
        call.scratch.resize(weight.cols(), 0.0);
        weight.decode_row(0, call.scratch);
    }
    for row in 0..call.rows.len() {
        let groups = call.ins[0].row(row).chunks_exact(group).zip(call.outs[0].row(row).chunks_exact_mut(group));
        for (index, (x, y)) in groups.enumerate() {
            let mean = sums::dot(x, x) / group as f32;
            let factor = 1.0 / (mean + params.eps).sqrt();
            let weight = match params.weighting {
                Weighting::None => None,
                Weighting::Shared => Some(&call.scratch[..]),
                Weighting::Full => Some(&call.scratch[index * group..][..group]),
            };
            for (column, (y, x)) in y.iter_mut().zip(x).enumerate() {
                let scaled = x * factor;
                *y = weight.map_or(scaled, |weight| scaled * weight[column]) * params.scale;
            }
        }
    }
}
