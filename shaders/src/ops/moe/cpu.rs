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
        for ((id, weight), out) in ids.iter().zip(weights).zip(pairs.chunks_exact_mut(width)) {
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
            out.iter_mut().for_each(|out| *out *= weight);
        }
        sum_by_rank(&pairs, call.outs[0].row(row));
    }
    Ok(())
}

fn sum_by_rank(pairs: &[f32], y: &mut [f32]) {
    y.fill(0.0);
    for pair in pairs.chunks_exact(y.len()) {
        y.iter_mut().zip(pair).for_each(|(y, pair)| *y += pair);
    }
}
