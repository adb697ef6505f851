//! CPU twin. Order: the rows seen are those of the first source, then those of the second; rows of a state by ascending position, a
//! list's in its own order. Scores are inner products as in [`crate::sums`], times the scale; then exponentials of `s - max`, where a
//! sink takes part in the maximum. Their sum and each column of the weighted sum of V add row after row from 0, a sink's exponential
//! comes last in the sum; one division at the end. So a row's bits depend on its own history alone.

use super::{Attend, AttendMask, AttendSource, Source};
use crate::contract::{CpuCall, RowAt, StateAccess};
use crate::sums;

/// Rows that a row sees, of each source.
type Seen<'a> = [Vec<&'a [f32]>; 2];

pub(super) fn run(op: &Attend, call: &mut CpuCall<'_>) -> Result<(), String> {
    let params = &op.params;
    let (k_width, v_width) = (params.k_width as usize, params.v_width as usize);
    let heads_a_kv = (params.heads / params.kv_heads) as usize;
    let sinks = if params.sink { call.weight(0).decode() } else { vec![] };
    // Their memory is used again row after row.
    let mut seen: Seen<'_> = [vec![], vec![]];
    for (row, at) in call.rows.iter().enumerate() {
        for (index, source) in op.sources.iter().enumerate() {
            let list = source.list.map(|input| call.ins[input].ints(row));
            seen[index].clear();
            see(&*call.states, index, source, list, *at, &mut seen[index])?;
        }
        let heads = call.ins[0].row(row).chunks_exact(k_width).zip(call.outs[0].row(row).chunks_exact_mut(v_width));
        for (head, (q, y)) in heads.enumerate() {
            let kv_head = head / heads_a_kv;
            let k = |source: &AttendSource| source.k_col0 as usize + kv_head * k_width;
            let v = |source: &AttendSource| source.v_col0 as usize + kv_head * v_width;
            let scores = &mut *call.scratch;
            scores.clear();
            let keys = columns(&seen, [k(&params.first), k(&params.second)], k_width);
            scores.extend(keys.map(|k| sums::dot(q, k) * params.scale));
            let values = columns(&seen, [v(&params.first), v(&params.second)], v_width);
            join(scores, values, sinks.get(head).copied(), y);
        }
    }
    Ok(())
}

/// The same columns of every row seen, of the first source's rows and then of the second's.
fn columns<'a>(seen: &Seen<'a>, col0: [usize; 2], width: usize) -> impl Iterator<Item = &'a [f32]> {
    let of = move |index: usize| seen[index].iter().map(move |row| &row[col0[index]..][..width]);
    of(0).chain(of(1))
}

/// `y` becomes the sum of the values by the softmax of their scores.
fn join<'a>(scores: &[f32], values: impl Iterator<Item = &'a [f32]>, sink: Option<f32>, y: &mut [f32]) {
    y.fill(0.0);
    if scores.is_empty() {
        return;
    }
    let largest = scores.iter().copied().chain(sink).fold(f32::NEG_INFINITY, f32::max);
    let mut total = 0.0;
    for (score, value) in scores.iter().zip(values) {
        let weight = (score - largest).exp();
        total += weight;
        y.iter_mut().zip(value).for_each(|(y, v)| *y += weight * v);
    }
    total += sink.map_or(0.0, |sink| (sink - largest).exp());
    y.iter_mut().for_each(|y| *y /= total);
}

/// Adds the rows of a source that a row sees.
fn see<'a>(
    states: &'a dyn StateAccess,
    index: usize,
    source: &Source,
    list: Option<&[i32]>,
    at: RowAt,
    seen: &mut Vec<&'a [f32]>,
) -> Result<(), String> {
    let RowAt { conv, pos, .. } = at;
    // Rows whose groups are complete at the row's position; at most 2^32, so that each index is a u32.
    let complete = (u64::from(pos) + 1) / u64::from(source.stride);
    let mut add = |row: u32| {
        let stored = states.row(index, conv, row);
        seen.push(stored.ok_or_else(|| format!("source {index}: row {row} of conversation {conv} was never stored or is gone"))?);
        Ok(())
    };
    let Some(list) = list else {
        let first = if source.mask == AttendMask::Window { complete.saturating_sub(u64::from(source.window)) } else { 0 };
        return (first..complete).try_for_each(|row| add(row as u32));
    };
    for entry in list.iter().filter(|entry| **entry != -1) {
        let row = u32::try_from(*entry).map_err(|_| format!("source {index}: {entry} in a list is neither a row nor -1"))?;
        if u64::from(row) >= complete {
            return Err(format!("source {index}: row {row} in a list is not complete at position {pos}"));
        }
        add(row)?;
    }
    Ok(())
}
