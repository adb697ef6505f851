//! CPU twin. Order: inner products as in [`crate::sums`]; a rank's row times its weight, rounded; then ranks added in order, from 0.

use super::Moe;
use crate::contract::{CpuCall, ExpertMatrix};
use crate::ops::{glu, matmul};

pub(super) fn run(moe: &Moe, call: &mut CpuCall<'_>) -> Result<(), String> {
    let (width, k) = (call.ins[0].width(), call.ins[1].width());
    let mut pairs = vec![0.0; k * width];
    let (mut gate, mut up) = (vec![0.0; moe.hidden], vec![0.0; moe.hidden]);
    for row in 0..call.rows.len() {
        let (x, ids, weights) = (call.ins[0].row(row), call.ins[1].ints(row), call.ins[2].row(row));
        for (id, out) in ids.iter().zip(pairs.chunks_exact_mut(width)) {
            let matrix = |which| {
                let expert = u32::try_from(*id).ok()?;
                call.expert(0, moe.layer, expert, which)
            };
            let all = [ExpertMatrix::Gate, ExpertMatrix::Up, ExpertMatrix::Down].map(matrix);
            let [Some(gate_w), Some(up_w), Some(down_w)] = all else {
                return Err(format!("there is no expert {id}"));
            };
            matmul::apply(gate_w, x, &mut gate, call.scratch);
            matmul::apply(up_w, x, &mut up, call.scratch);
            glu::apply(moe.act, &mut gate, &up);
            matmul::apply(down_w, &gate, out, call.scratch);
        }
        sum_by_rank(pairs.chunks_exact(width).zip(weights.iter().copied()), call.outs[0].row(row));
    }
    Ok(())
}

/// `y` becomes the sum of rows, each times its weight, in their order.
pub(super) fn sum_by_rank<'a>(rows: impl Iterator<Item = (&'a [f32], f32)>, y: &mut [f32]) {
    y.fill(0.0);
    for (row, weight) in rows {
        y.iter_mut().zip(row).for_each(|(y, row)| *y += row * weight);
    }
}
