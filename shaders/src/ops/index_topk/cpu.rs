//! CPU twin. Order: inner products as in [`crate::sums`], times the scale; a score adds its heads from 0 upwards. Choosing is exact: higher
//! scores first, the lower index among equals.

use super::IndexTopkParams;
use crate::contract::{CpuCall, RowAt, StateAccess};
use crate::sums;

/// A row or block, and its score.
type Scored = (u32, f32);

pub(super) fn run(params: &IndexTopkParams, call: &mut CpuCall<'_>) -> Result<(), String> {
    for (row, at) in call.rows.iter().enumerate() {
        let seen = (at.pos + 1) / params.stride;
        let weights = params.weighted.then(|| call.ins[1].row(row));
        let given = params.cand_given.then(|| call.ins[1 + usize::from(params.weighted)].ints(row));
        let marks = given.map(|ids| marks(ids, seen, params.cand_block));
        let wanted = |index: u32| marks.as_ref().is_none_or(|marks| marks[(index / params.cand_block) as usize]);
        let mut scored = scores(params, &*call.states, at, call.ins[0].row(row), weights, (0..seen).filter(|index| wanted(*index)))?;
        if let Some((index, _)) = scored.iter().find(|(_, score)| !score.is_finite()) {
            return Err(format!("the score of row {index} of the index is not finite in row {row} of the step"));
        }
        if params.cand_out > 0 {
            let blocks = best(&mut blocks(&scored, seen, params.cand_block), params.cand_out);
            write(call.outs[1].ints(row), blocks.into_iter());
        }
        let rows = best(&mut scored, params.k).into_iter();
        let list = call.outs[0].ints(row);
        if params.expand {
            let positions = rows.flat_map(|row| row * params.stride..(row + 1) * params.stride);
            write(list, positions.chain(seen * params.stride..at.pos + 1));
        } else {
            write(list, rows);
        }
    }
    Ok(())
}

/// Which blocks the candidates name, of those that have rows.
fn marks(ids: &[i32], seen: u32, block: u32) -> Vec<bool> {
    let mut marks = vec![false; seen.div_ceil(block) as usize];
    for id in ids {
        if let Some(mark) = usize::try_from(*id).ok().and_then(|id| marks.get_mut(id)) {
            *mark = true;
        }
    }
    marks
}

fn scores(
    params: &IndexTopkParams,
    states: &dyn StateAccess,
    at: &RowAt,
    q: &[f32],
    weights: Option<&[f32]>,
    rows: impl Iterator<Item = u32>,
) -> Result<Vec<Scored>, String> {
    let score = |index: u32| {
        let key = states.row(0, at.conv, index);
        let key = key.ok_or_else(|| format!("row {index} of conversation {} was never stored", at.conv))?;
        let mut score = 0.0;
        for (head, q) in q.chunks_exact(q.len() / params.heads as usize).enumerate() {
            let product = params.scale * sums::dot(q, key);
            // Not `max`, which would make a number of what is not one.
            let product = if product < 0.0 { 0.0 } else { product };
            score += weights.map_or(1.0, |weights| weights[head]) * product;
        }
        Ok((index, score))
    };
    rows.map(score).collect()
}

/// Each block with a scored row and the score of its best one; the newest block beats all.
fn blocks(scored: &[Scored], seen: u32, block: u32) -> Vec<Scored> {
    let mut blocks: Vec<Scored> = vec![];
    for (index, score) in scored {
        match blocks.last_mut() {
            Some((last, best)) if *last == index / block => *best = best.max(*score),
            _ => blocks.push((index / block, *score)),
        }
    }
    if let Some(newest) = seen.checked_sub(1).map(|row| row / block) {
        blocks.retain(|(block, _)| *block != newest);
        blocks.push((newest, f32::INFINITY));
    }
    blocks
}

/// The `k` best, in ascending order.
fn best(scored: &mut Vec<Scored>, k: u32) -> Vec<u32> {
    let k = k as usize;
    if scored.len() > k {
        // No score is -0: each is a sum that begins with 0.
        scored.select_nth_unstable_by(k - 1, |a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        scored.truncate(k);
    }
    let mut chosen: Vec<u32> = scored.iter().map(|(index, _)| *index).collect();
    chosen.sort_unstable();
    chosen
}

/// A list, then -1.
fn write(out: &mut [i32], list: impl Iterator<Item = u32>) {
    let list = list.map(|index| index as i32).chain(std::iter::repeat(-1));
    out.iter_mut().zip(list).for_each(|(out, index)| *out = index);
}
