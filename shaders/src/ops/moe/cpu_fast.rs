//! Fast mode: the rows of each expert together, products and exponentials as in [`crate::fast`], the order of ranks as in the CPU twin.

use std::ops::Range;

use super::Moe;
use super::cpu::sum_by_rank;
use crate::contract::{CpuCall, ExpertMatrix, Fast};
use crate::fast::Pane;
use crate::fast::product::{self, Operand};
use crate::formats::WeightView;
use crate::ops::glu;

/// An expert, and which of the sorted pairs are its rows.
struct Chosen<'a> {
    pairs: Range<usize>,
    gate: WeightView<'a>,
    up: WeightView<'a>,
    down: WeightView<'a>,
}

/// Pairs of a row and a rank, sorted by expert, then by row.
struct Pairs<'a> {
    /// Row of each.
    rows: Vec<u32>,
    /// Rank of each.
    ranks: Vec<u32>,
    experts: Vec<Chosen<'a>>,
}

pub(super) fn run(moe: &Moe, call: &mut CpuCall<'_>, fast: &Fast<'_>) -> Result<(), String> {
    let (width, k, rows) = (call.ins[0].width(), call.ins[1].width(), call.rows.len());
    let pairs = sort(moe, call)?;
    let (x, weights, team) = (call.ins[0], call.ins[2], call.team);
    let ([acts, mid], [hidden, out]) = (&mut *fast.scratch.acts(), &mut *fast.scratch.numbers());
    let count = pairs.rows.len();
    let formats = pairs.experts.iter().flat_map(|expert| [expert.gate.format(), expert.up.format()]);
    let row = |row: usize| x.row(row);
    let operand = Operand::new(team, formats, (rows, width), &row, acts);
    hidden.resize(count * moe.hidden, 0.0);
    out.resize(count * width, 0.0);
    gate_and_up(moe, &pairs, operand, hidden, call, fast);
    let formats = pairs.experts.iter().map(|expert| expert.down.format());
    let hidden = &*hidden;
    let row = |pair: usize| &hidden[pair * moe.hidden..][..moe.hidden];
    let operand = Operand::new(team, formats, (count, moe.hidden), &row, mid);
    down(&pairs, operand, out, width, call, fast);
    // The rank sums of a row need its pairs by rank.
    let mut place = vec![0u32; rows * k];
    let at = pairs.rows.iter().zip(&pairs.ranks).enumerate();
    at.for_each(|(pair, (row, rank))| place[*row as usize * k + *rank as usize] = pair as u32);
    let y: &mut [f32] = bytemuck::cast_slice_mut(call.outs[0].words(rows));
    product::share_rows(team, y, width, &|first, y, _| {
        for (row, y) in y.chunks_exact_mut(width).enumerate() {
            let row = first + row;
            let ranks = place[row * k..][..k].iter().zip(weights.row(row));
            sum_by_rank(ranks.map(|(pair, weight)| (&out[*pair as usize * width..][..width], *weight)), y);
        }
    });
    Ok(())
}

fn sort<'a>(moe: &Moe, call: &CpuCall<'a>) -> Result<Pairs<'a>, String> {
    let mut all: Vec<(i32, u32, u32)> = vec![];
    for row in 0..call.rows.len() {
        all.extend(call.ins[1].ints(row).iter().enumerate().map(|(rank, id)| (*id, row as u32, rank as u32)));
    }
    all.sort_unstable();
    let mut experts = vec![];
    let mut start = 0;
    for run in all.chunk_by(|a, b| a.0 == b.0) {
        let id = run[0].0;
        let matrix = |which| call.expert(0, moe.layer, u32::try_from(id).ok()?, which);
        let [Some(gate), Some(up), Some(down)] = [ExpertMatrix::Gate, ExpertMatrix::Up, ExpertMatrix::Down].map(matrix) else {
            return Err(format!("there is no expert {id}"));
        };
        experts.push(Chosen { pairs: start..start + run.len(), gate, up, down });
        start += run.len();
    }
    let (rows, ranks) = all.into_iter().map(|(_, row, rank)| (row, rank)).unzip();
    Ok(Pairs { rows, ranks, experts })
}

/// `hidden` becomes `glu(gate x, up x)` for each pair.
fn gate_and_up(moe: &Moe, pairs: &Pairs<'_>, x: Operand<'_>, hidden: &mut [f32], call: &CpuCall<'_>, fast: &Fast<'_>) {
    by_expert(pairs, hidden, moe.hidden, call, fast, &|expert, cols, mut pane, thread| {
        let of = &pairs.rows[expert.pairs.clone()];
        let own = &mut *fast.scratch.thread(thread);
        product::product(fast, &expert.gate, cols.clone(), x, of, own, &mut pane);
        let mut up = std::mem::take(&mut own.numbers);
        up.resize(of.len() * cols.len(), 0.0);
        product::product(fast, &expert.up, cols.clone(), x, of, own, &mut Pane::new(&mut up, cols.len()));
        up.chunks_exact(cols.len()).enumerate().for_each(|(row, up)| glu::apply_fast(fast.level, moe.act, pane.row_mut(row), up));
        own.numbers = up;
    });
}

/// `out` becomes `down h` for each pair.
fn down(pairs: &Pairs<'_>, h: Operand<'_>, out: &mut [f32], width: usize, call: &CpuCall<'_>, fast: &Fast<'_>) {
    by_expert(pairs, out, width, call, fast, &|expert, cols, mut pane, thread| {
        let of: Vec<u32> = expert.pairs.clone().map(|pair| pair as u32).collect();
        product::product(fast, &expert.down, cols, h, &of, &mut fast.scratch.thread(thread), &mut pane);
    });
}

/// Work on an expert's weight rows, given which, where the results for its pairs go, and the thread.
type Work<'a> = dyn Fn(&Chosen<'_>, Range<usize>, Pane<'_>, usize) + Sync + 'a;

/// Gives out each expert's share of a matrix that has a row of `width` numbers for each pair.
fn by_expert(pairs: &Pairs<'_>, numbers: &mut [f32], width: usize, call: &CpuCall<'_>, fast: &Fast<'_>, work: &Work<'_>) {
    let matrices = pairs.experts.iter().map(|_| width);
    let pieces = product::pieces(fast.class, matrices, call.team.threads());
    let mut panes = vec![];
    let mut rest = numbers;
    for (pieces, expert) in pieces.chunk_by(|a, b| a.0 == b.0).zip(&pairs.experts) {
        let (own, others) = rest.split_at_mut(expert.pairs.len() * width);
        rest = others;
        panes.extend(product::panes(Pane::new(own, width), pieces.iter().map(|(_, cols)| cols.clone())));
    }
    product::share_panes(call.team, panes.into_iter(), &|index, pane, thread| {
        let (expert, cols) = &pieces[index];
        work(&pairs.experts[*expert], cols.clone(), pane, thread);
    });
}
