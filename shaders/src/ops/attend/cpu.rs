//! CPU twin. Order: scores are inner products as in [`crate::sums`], times the scale; exponentials of `s - max`; their sum and each
//! column of the weighted sum of V add position after position from 0, so that a row's bits depend on its position alone; one division
//! at the end.

use super::AttendParams;
use crate::contract::{CpuCall, StateAccess};
use crate::sums;

pub(super) fn run(params: &AttendParams, stride: u32, call: &mut CpuCall<'_>) -> Result<(), String> {
    let (k_width, v_width) = (params.k_width as usize, params.v_width as usize);
    let heads_a_kv = (params.heads / params.kv_heads) as usize;
    for (row, at) in call.rows.iter().enumerate() {
        let rows = stored(&*call.states, at.conv, (at.pos + 1) / stride)?;
        let heads = call.ins[0].row(row).chunks_exact(k_width).zip(call.outs[0].row(row).chunks_exact_mut(v_width));
        for (head, (q, y)) in heads.enumerate() {
            let kv_head = head / heads_a_kv;
            let k = params.first.k_col0 as usize + kv_head * k_width;
            let v = params.first.v_col0 as usize + kv_head * v_width;
            let scores = &mut *call.scratch;
            scores.clear();
            scores.extend(rows.iter().map(|stored| sums::dot(q, &stored[k..][..k_width]) * params.scale));
            let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let mut total = 0.0;
            y.fill(0.0);
            for (score, stored) in scores.iter().zip(&rows) {
                let weight = (score - largest).exp();
                total += weight;
                y.iter_mut().zip(&stored[v..][..v_width]).for_each(|(y, v)| *y += weight * v);
            }
            if !rows.is_empty() {
                y.iter_mut().for_each(|y| *y /= total);
            }
        }
    }
    Ok(())
}

/// The first rows of a conversation.
fn stored(states: &dyn StateAccess, conv: u32, count: u32) -> Result<Vec<&[f32]>, String> {
    (0..count)
        .map(|index| states.row(0, conv, index).ok_or_else(|| format!("row {index} of conversation {conv} was never stored")))
        .collect()
}
