//! Attention of a single row, in parts that threads take: the order "Steps" of [`super::attend`].
//!
//! A part is the rows seen whose indices have one quotient by [`PART`], or so many entries of a list. A score is an inner product of 16
//! lanes (lane `l` takes the columns `l`, `l + 16`, ... by `fma`; a lane is joined with its eighth neighbour, the fourth, ...) times the
//! scale. With `m` the part's greatest score and `p = exp(s - m)`, a part is `m`, the sum of `p` (16 lanes) and `y = fma(p, v, y)`, row
//! after row from 0. [`join`] takes `c = exp(m - M)` with the greatest of all `m` and of the sink: `total = fma(total of the part, c,
//! total)` and `y = fma(y of the part, c, y)`, part after part, a sink's weight last; then `y / total`.

use std::ops::Range;

use super::attend::{Heads, Scratch, Seen, Source, listed};
use super::attend_dots::{self as dots, Number};
use super::attend_sums::{self as sums, HEADS};
use super::float_gemm_tile::{Units, product};
use super::gemm::{STRIP, Unit};
use super::gemm_words::Here;
use super::{Level, attend_rows, expf};
use crate::contract::Stored;

/// Rows of a part.
pub const PART: usize = 256;

/// Rows of V that are added together.
const ROWS_A_TIME: usize = 16;

/// How many rows ahead memory is asked for, where one K/V head is taken.
const AHEAD: usize = 32;

/// A part of what a row sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Which source.
    pub source: usize,
    /// Rows, or entries of its list.
    pub range: Range<usize>,
}

/// All parts of what a row sees, in order.
pub fn parts<'a>(seen: &'a [Seen<'_>]) -> impl Iterator<Item = Part> + 'a {
    seen.iter().enumerate().flat_map(|(source, seen)| {
        let all = match seen {
            Seen::Rows(rows) => rows.clone(),
            Seen::List(list) => 0..list.len(),
        };
        let parts = if all.is_empty() { 0..0 } else { all.start / PART..all.end.div_ceil(PART) };
        parts.map(move |part| Part { source, range: all.start.max(part * PART)..all.end.min((part + 1) * PART) })
    })
}

/// Units of a part's result: for each head one with the greatest score and the sum of weights, then the weighted sum of V.
pub fn units(heads: &Heads) -> usize {
    heads.heads * (1 + heads.v_units())
}

/// Computes a part for the heads of `q`, side by side, which becomes `out`. They may belong to several K/V heads, whose columns follow each
/// other from the source's own: `q` has `heads` for each of them, and `out` has so many [`units`]. Taken together, rows are read as they
/// lie in memory.
///
/// # Panics
/// When a slice has another size than `heads` says, when a row is seen that is not stored or has another form than the first, or when the
/// machine lacks the level.
pub fn part(
    level: Level,
    heads: &Heads,
    sources: &[Source<'_>],
    (seen, part): (&[Seen<'_>], &Part),
    q: &[f32],
    scratch: &mut Scratch,
    out: &mut [Unit],
) {
    let here = Here::new(level);
    let kv_heads = q.len() / (heads.heads * heads.k_width);
    let sizes = (kv_heads * heads.heads * heads.k_width, kv_heads * units(heads));
    assert!(kv_heads > 0 && (q.len(), out.len()) == sizes, "the size of a part");
    let source = &sources[part.source];
    let mut places = [(0, 0); PART];
    let count = match &seen[part.source] {
        Seen::Rows(_) => {
            let all = std::iter::successors(Some(source.at(part.range.start)), |at| Some(source.after(*at)));
            places[..part.range.len()].iter_mut().zip(all).map(|(place, at)| *place = at).count()
        }
        Seen::List(list) => listed(source, &list[part.range.clone()], &mut places),
    };
    out.fill(Unit::ZERO);
    out.chunks_exact_mut(1 + heads.v_units()).for_each(|out| out[0].0[0] = f32::NEG_INFINITY.to_bits());
    let Some(first) = places[..count].first() else { return };
    let columns = |col: usize, width: usize| col + kv_heads * width <= source.width;
    assert!(columns(source.k_col, heads.k_width) && columns(source.v_col, heads.v_width), "columns of {kv_heads} heads in rows");
    scratch.scores.resize(kv_heads * heads.heads * PART / STRIP, Unit::ZERO);
    let of = Of { here, heads, source, kv_heads };
    match source.row(*first) {
        Stored::Whole(first) => {
            let mut rows = [first; PART];
            for (row, at) in rows.iter_mut().zip(&places[..count]) {
                let Stored::Whole(stored) = source.row(*at) else { panic!("rows of two forms") };
                *row = stored;
            }
            of.run(&rows[..count], q, &mut scratch.scores, out);
        }
        Stored::Half(first) => {
            let mut rows = [first; PART];
            for (row, at) in rows.iter_mut().zip(&places[..count]) {
                let Stored::Half(stored) = source.row(*at) else { panic!("rows of two forms") };
                *row = stored;
            }
            of.run(&rows[..count], q, &mut scratch.scores, out);
        }
    }
}

/// A part's source, and who sees it.
struct Of<'a> {
    here: Here,
    heads: &'a Heads,
    source: &'a Source<'a>,
    kv_heads: usize,
}

impl Of<'_> {
    /// All heads see whole rows.
    fn run<T: Number>(&self, rows: &[&[T]], q: &[f32], scores: &mut [Unit], out: &mut [Unit]) {
        self.score(rows, q, bytemuck::cast_slice_mut(scores));
        let each = 1 + self.heads.v_units();
        for (scores, out) in scores.chunks_exact_mut(PART / STRIP).zip(out.chunks_exact_mut(each)) {
            let mut max = f32::NEG_INFINITY;
            let total = attend_rows::weigh(self.here, scores, 0..rows.len(), self.heads.scale, &mut max);
            (out[0].0[0], out[0].0[1]) = (max.to_bits(), total.to_bits());
        }
        self.add(rows, bytemuck::cast_slice(scores), out);
    }

    /// Inner products of all heads with all rows.
    fn score<T: Number>(&self, rows: &[&[T]], q: &[f32], scores: &mut [f32]) {
        let Heads { heads, k_width, .. } = *self.heads;
        let ahead = (AHEAD / self.kv_heads).max(dots::ROWS);
        for first in (0..rows.len()).step_by(dots::ROWS) {
            for kv_head in 0..self.kv_heads {
                let columns = self.source.k_col + kv_head * k_width..self.source.k_col + (kv_head + 1) * k_width;
                // Beyond the last row: that one again.
                let row = |index: usize| &rows[(first + index).min(rows.len() - 1)][columns.clone()];
                (0..dots::ROWS).for_each(|index| attend_rows::prefetch(row(ahead + index)));
                let keys: [&[T]; dots::ROWS] = std::array::from_fn(row);
                for head in kv_head * heads..(kv_head + 1) * heads {
                    // All of a part has room, so whole fours have.
                    let to = &mut scores[head * PART + first..][..dots::ROWS];
                    dots::dots(self.here, &q[head * k_width..][..k_width], keys, to);
                }
            }
        }
    }

    /// Adds the weighed rows of V.
    fn add<T: Number>(&self, rows: &[&[T]], weights: &[f32], out: &mut [Unit]) {
        let Heads { heads, v_width, .. } = *self.heads;
        let each = 1 + self.heads.v_units();
        let ahead = (AHEAD / self.kv_heads).max(ROWS_A_TIME);
        for first in (0..rows.len()).step_by(ROWS_A_TIME) {
            let some = &rows[first..rows.len().min(first + ROWS_A_TIME)];
            for kv_head in 0..self.kv_heads {
                let columns = self.source.v_col + kv_head * v_width..self.source.v_col + (kv_head + 1) * v_width;
                rows.iter().skip(first + ahead).take(ROWS_A_TIME).for_each(|row| attend_rows::prefetch(&row[columns.clone()]));
                let mut values = [&some[0][columns.clone()]; ROWS_A_TIME];
                values.iter_mut().zip(some).for_each(|(value, row)| *value = &row[columns.clone()]);
                for head in (0..heads).step_by(HEADS) {
                    let (head, count) = (kv_head * heads + head, HEADS.min(heads - head));
                    let of = |index: usize| &weights[(head + index).min(self.kv_heads * heads - 1) * PART + first..][..some.len()];
                    let weights: [&[f32]; HEADS] = std::array::from_fn(of);
                    let at: [usize; HEADS] = std::array::from_fn(|index| (head + index) * each + 1);
                    sums::add(self.here, &weights[..count], &values[..some.len()], out, &at[..count]);
                }
            }
        }
    }
}

/// Joins all parts of a row, in order, to its heads side by side; a row that sees nothing gives 0. `sinks` has a score for each head, or
/// none.
///
/// # Panics
/// When a slice has another size than `heads` says, or when the machine lacks the level.
pub fn join(level: Level, heads: &Heads, parts: &[Unit], sinks: &[f32], out: &mut [f32]) {
    let here = Here::new(level);
    assert!(parts.len().is_multiple_of(units(heads)) && out.len() == heads.heads * heads.v_width, "the size of parts");
    assert!(sinks.is_empty() || sinks.len() == heads.heads, "a sink for each head");
    let width = heads.v_units();
    let mut factors = Vec::with_capacity(parts.len() / units(heads));
    let mut y = vec![Unit::ZERO; width];
    for (head, to) in out.chunks_exact_mut(heads.v_width).enumerate() {
        let of = || parts.chunks_exact(units(heads)).map(|part| &part[head * (1 + width)].0);
        let maxima = || of().map(|part| f32::from_bits(part[0])).chain(sinks.get(head).copied());
        let most = maxima().fold(f32::NEG_INFINITY, |most, max| if max > most { max } else { most });
        factors.clear();
        factors.extend(of().map(|part| expf::exp(f32::from_bits(part[0]) - most)));
        let mut total = of().zip(&factors).fold(0.0, |total, (part, factor)| f32::from_bits(part[1]).mul_add(*factor, total));
        // A part in which a row is seen has a sum of at least 1, or a NaN.
        if of().all(|part| f32::from_bits(part[1]) == 0.0) {
            to.fill(0.0);
            continue;
        }
        total += sinks.get(head).map_or(0.0, |sink| expf::exp(sink - most));
        y.fill(Unit::ZERO);
        let values = Units { units: &parts[head * (1 + width) + 1..], step: units(heads), apart: 1, strips: width };
        product(here, values, &[&factors], &mut y, &[0]);
        to.iter_mut().zip(bytemuck::cast_slice::<_, f32>(&y)).for_each(|(to, y)| *to = y / total);
    }
}
