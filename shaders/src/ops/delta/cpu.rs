//! CPU twin. Order: rows of a conversation by position; of each column of S, first the decay of every number, then `m` as an inner product
//! over the key channels as in [`crate::sums`], then the product with k added to every number, then `y` as an inner product. All in f32.

use super::{Delta, DeltaDecay, DeltaHeads, DeltaRate};
use crate::contract::CpuCall;
use crate::sums;

pub(super) fn run(op: &Delta, call: &mut CpuCall<'_>) -> Result<(), String> {
    let (a, dt) = (call.weight(0).decode(), call.weight(1).decode());
    let (k_width, v_width) = (op.k_width, op.v_width);
    call.scratch.clear();
    call.scratch.resize(2 * k_width, 0.0);
    let (decay, column) = call.scratch.split_at_mut(k_width);
    for (row, at) in call.rows.iter().enumerate() {
        let [q, k, v, gate, beta] = [0, 1, 2, 3, 4].map(|input| call.ins[input].row(row));
        let state = call.states.accumulator(0, at.conv, at.pos);
        let state = state.ok_or_else(|| format!("no value before position {} of conversation {}", at.pos, at.conv))?;
        let heads = state.chunks_exact_mut(k_width * v_width).zip(call.outs[0].row(row).chunks_exact_mut(v_width));
        for (head, (matrix, y)) in heads.enumerate() {
            decays(op, head, a[head], gate, &dt, decay);
            let key_head = key_head(op, head);
            let (query, key) = (&q[key_head * k_width..][..k_width], &k[key_head * k_width..][..k_width]);
            let (value, share) = (&v[head * v_width..][..v_width], sigmoid(beta[head]));
            for (index, (y, value)) in y.iter_mut().zip(value).enumerate() {
                let numbers = || (0..k_width).map(|channel| channel * v_width + index);
                column.iter_mut().zip(numbers()).zip(&*decay).for_each(|((number, at), decay)| *number = matrix[at] * decay);
                let change = share * (value - sums::dot(column, key));
                column.iter_mut().zip(key).for_each(|(number, key)| *number += key * change);
                *y = sums::dot(column, query);
                numbers().zip(&*column).for_each(|(at, number)| matrix[at] = *number);
            }
        }
    }
    Ok(())
}

fn key_head(op: &Delta, head: usize) -> usize {
    let key_heads = op.params.key_heads as usize;
    match op.params.head_map {
        DeltaHeads::Grouped => head / (op.heads / key_heads),
        DeltaHeads::Tiled => head % key_heads,
    }
}

/// What the numbers of each key channel of a head are multiplied by.
fn decays(op: &Delta, head: usize, a: f32, gate: &[f32], dt: &[f32], out: &mut [f32]) {
    let rate = match op.params.rate {
        DeltaRate::Log => a.exp(),
        DeltaRate::Negated => -a,
    };
    let decay = |at: usize| {
        let x = gate[at] + dt[at];
        let log = match op.params.decay {
            DeltaDecay::Softplus => -(rate * softplus(x)),
            DeltaDecay::Bounded => op.params.bound * sigmoid(rate * x),
        };
        log.exp()
    };
    if op.params.per_channel {
        out.iter_mut().enumerate().for_each(|(channel, out)| *out = decay(head * op.k_width + channel));
    } else {
        out.fill(decay(head));
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// `ln(1 + e^x)`, without its overflow.
fn softplus(x: f32) -> f32 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}
