//! CPU twin. Order, column by column: the rows of a group by position, those of the group before first. Exponentials of `gate - max`, their
//! sum and their inner product with kv as in [`crate::sums`], and one division; the mean is a sum as there and one division.

use super::{PoolMode, PoolParams};
use crate::contract::{CpuCall, StateAccess};
use crate::sums;

/// A stored row that takes part.
struct Entry<'a> {
    /// kv, then the gate where there is one.
    stored: &'a [f32],
    /// The first of its columns that are mixed.
    col0: usize,
    /// Its row of ape.
    ape: &'a [f32],
}

pub(super) fn run(params: &PoolParams, call: &mut CpuCall<'_>) -> Result<(), String> {
    let ape = if params.ape { call.weight(0).decode() } else { vec![] };
    let width = call.ins[0].width();
    for (row, at) in call.rows.iter().enumerate() {
        let stored = call.states.row_mut(0, at.conv, at.pos);
        let stored = stored.ok_or_else(|| format!("no room for position {} of conversation {}", at.pos, at.conv))?;
        stored.chunks_exact_mut(width).zip(call.ins).for_each(|(part, input)| part.copy_from_slice(input.row(row)));
        let y = call.outs[0].row(row);
        if (at.pos + 1) % params.ratio != 0 {
            y.fill(0.0);
            continue;
        }
        let entries = entries(params, &*call.states, (at.conv, at.pos), width, &ape)?;
        for (column, y) in y.iter_mut().enumerate() {
            *y = mixed(params, &entries, column, width, call.scratch);
        }
    }
    Ok(())
}

/// The rows that the group ending at a position mixes.
fn entries<'a>(
    params: &PoolParams,
    states: &'a dyn StateAccess,
    (conv, pos): (u32, u32),
    width: usize,
    ape: &'a [f32],
) -> Result<Vec<Entry<'a>>, String> {
    let start = pos + 1 - params.ratio;
    let first = if params.overlap { start.saturating_sub(params.ratio) } else { start };
    let entry = |index: u32| {
        let stored = states.row(0, conv, index);
        let stored = stored.ok_or_else(|| format!("the row at position {index} of conversation {conv} is not stored"))?;
        let col0 = if params.overlap && index >= start { width / 2 } else { 0 };
        let ape = if params.ape { &ape[(index % params.ratio) as usize * width..][..width] } else { &[] };
        Ok(Entry { stored, col0, ape })
    };
    (first..=pos).map(entry).collect()
}

/// One number of a complete group.
fn mixed(params: &PoolParams, entries: &[Entry<'_>], column: usize, width: usize, scratch: &mut Vec<f32>) -> f32 {
    scratch.clear();
    scratch.extend(entries.iter().map(|entry| entry.stored[entry.col0 + column]));
    if params.mode == PoolMode::Mean {
        return sums::sum(scratch) / entries.len() as f32;
    }
    scratch.extend(entries.iter().map(|entry| {
        let column = entry.col0 + column;
        entry.stored[width + column] + entry.ape.get(column).copied().unwrap_or(0.0)
    }));
    let (numbers, weights) = scratch.split_at_mut(entries.len());
    let largest = weights.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    weights.iter_mut().for_each(|weight| *weight = (*weight - largest).exp());
    sums::dot(weights, numbers) / sums::sum(weights)
}
