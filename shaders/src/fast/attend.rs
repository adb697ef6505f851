//! Attention of fast mode: the heads of one K/V head, over stored rows of f32 or f16. What it computes is `attend@1`; the order is its own.
//!
//! A row sees rows of up to two sources, those of the first before those of the second. There are two orders, one for each row class.
//!
//! - **Prompts** ([`prompt`]). Rows are taken in blocks: the rows whose indices have one quotient by [`BLOCK`], or so many entries of a
//!   list. A score is one accumulator, column after column by `fma`, times the scale. A block raises the greatest score `m`, weighs its
//!   rows by `p = exp(s - m)`, and with `c = exp(m before - m)` does `total = fma(total, c, sum p)` (a sum of 16 lanes) and `y = y * c`,
//!   then `y = fma(p, v, y)` row after row. At the end `y / total`, where a sink has raised `m` and added its own weight before.
//! - **Steps** ([`super::attend_step`]). Rows are taken in parts of 256, of which each is computed alone and which are then joined in
//!   order.
//!
//! So a row's bits depend on what it sees alone: not on the rows beside it, nor on where a prompt was cut, nor on threads. The
//! exponential is [`super::expf`].

use std::ops::Range;

use super::float_gemm_tile::{ROWS, Units, product};
use super::gemm::{STRIP, Unit};
use super::gemm_words::{self, Here};
use super::{Level, Pane, attend_rows, expf};
use crate::contract::Stored;

/// Rows of a block.
pub const BLOCK: usize = 64;

/// The heads of one K/V head.
#[derive(Debug, Clone, Copy)]
pub struct Heads {
    /// Query heads.
    pub heads: usize,
    /// Columns of K.
    pub k_width: usize,
    /// Columns of V.
    pub v_width: usize,
    /// A factor of the scores.
    pub scale: f32,
}

/// Where rows are stored. Page `i` has the rows from `i * page` on; a page may lack rows that no one sees, and be empty.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Pages of whole rows.
    pub pages: &'a [Stored<'a>],
    /// Rows of a page.
    pub page: usize,
    /// Numbers of a row.
    pub width: usize,
    /// The first column of the head's K.
    pub k_col: usize,
    /// The first column of its V.
    pub v_col: usize,
}

/// Rows of a source that a row sees.
#[derive(Debug, Clone)]
pub enum Seen<'a> {
    /// Rows in order.
    Rows(Range<usize>),
    /// Rows by their indices, in the list's order; -1 is none.
    List(&'a [i32]),
}

/// A row of a prompt.
#[derive(Debug, Clone)]
pub struct Row<'a> {
    /// Its query heads side by side.
    pub q: &'a [f32],
    /// What it sees of each source.
    pub seen: [Seen<'a>; 2],
}

/// Memory that is used again.
#[derive(Debug, Default)]
pub struct Scratch {
    /// A block's rows of K, and the same in strips.
    keys: Vec<f32>,
    key_units: Vec<Unit>,
    /// A block's rows of V, each in whole units.
    values: Vec<Unit>,
    /// Scores, then weights, of some queries.
    pub(super) scores: Vec<Unit>,
    /// Of each query: the greatest score, the sum of weights, and the weighted sum of V.
    max: Vec<f32>,
    total: Vec<f32>,
    y: Vec<Unit>,
}

/// Where a row is stored: its page, and its place there.
pub(super) type At = (usize, usize);

/// A query that sees rows of a block.
struct Part {
    query: usize,
    seen: Range<usize>,
}

/// Numbers of a row or a page.
fn len(stored: Stored<'_>) -> usize {
    match stored {
        Stored::Whole(numbers) => numbers.len(),
        Stored::Half(numbers) => numbers.len(),
    }
}

fn slice(stored: Stored<'_>, first: usize, count: usize) -> Stored<'_> {
    match stored {
        Stored::Whole(numbers) => Stored::Whole(&numbers[first..][..count]),
        Stored::Half(numbers) => Stored::Half(&numbers[first..][..count]),
    }
}

impl<'a> Source<'a> {
    /// A whole row.
    pub(super) fn row(&self, (page, row): At) -> Stored<'a> {
        slice(self.pages[page], row * self.width, self.width)
    }

    /// K of a row.
    fn key(&self, row: At, heads: &Heads) -> Stored<'a> {
        self.columns(row, self.k_col, heads.k_width)
    }

    /// V of a row.
    fn value(&self, row: At, heads: &Heads) -> Stored<'a> {
        self.columns(row, self.v_col, heads.v_width)
    }

    fn columns(&self, (page, row): At, col: usize, count: usize) -> Stored<'a> {
        assert!(col + count <= self.width, "columns {col}+{count} of {}", self.width);
        slice(self.pages[page], row * self.width + col, count)
    }

    /// Where a row is.
    pub(super) fn at(&self, row: usize) -> At {
        (row / self.page, row % self.page)
    }

    /// Where the next row is.
    pub(super) fn after(&self, (page, row): At) -> At {
        if row + 1 == self.page { (page + 1, 0) } else { (page, row + 1) }
    }

    fn check(&self, index: usize, seen: &Seen<'_>) {
        let end = match seen {
            Seen::Rows(rows) if rows.is_empty() => return,
            Seen::Rows(rows) => rows.end,
            Seen::List(list) => list.iter().max().map_or(0, |row| (i64::from(*row) + 1) as usize),
        };
        let stored = |row: usize| self.pages.get(row / self.page).is_some_and(|page| (row % self.page + 1) * self.width <= len(*page));
        assert!(end == 0 || stored(end - 1), "source {index}: row {} is seen and not stored", end - 1);
    }
}

impl Heads {
    /// Units of a row of V.
    pub(super) fn v_units(&self) -> usize {
        self.v_width.div_ceil(STRIP)
    }
}

impl Scratch {
    /// Makes room for blocks of `rows` rows.
    fn reset(&mut self, heads: &Heads, rows: usize) {
        self.keys.resize(rows * heads.k_width, 0.0);
        self.key_units.resize(rows.div_ceil(STRIP) * heads.k_width, Unit::ZERO);
        // What follows a row of V in its last unit is weighed and never read, but is a number.
        self.values.clear();
        self.values.resize(rows * heads.v_units(), Unit::ZERO);
    }

    /// Takes V of a row for row `to` of the block.
    fn take_value(&mut self, here: Here, heads: &Heads, to: usize, value: Stored<'_>) {
        let row = &mut self.values[to * heads.v_units()..][..heads.v_units()];
        attend_rows::decode(here, value, &mut bytemuck::cast_slice_mut(row)[..heads.v_width]);
    }

    /// Takes the rows `rows` of a block, whose places come in order.
    fn take(&mut self, here: Here, heads: &Heads, source: &Source<'_>, rows: Range<usize>, places: impl Iterator<Item = At>) {
        for (row, at) in rows.clone().zip(places) {
            let key = &mut self.keys[row * heads.k_width..][..heads.k_width];
            attend_rows::decode(here, source.key(at, heads), key);
            self.take_value(here, heads, row, source.value(at, heads));
        }
        for strip in rows.start / STRIP..rows.end.div_ceil(STRIP) {
            let from = &self.keys[strip * STRIP * heads.k_width..][..STRIP * heads.k_width];
            let to = &mut self.key_units[strip * heads.k_width..][..heads.k_width];
            gemm_words::interleave(here, bytemuck::cast_slice(from), heads.k_width, to);
        }
    }

    /// Lets queries see the block that was taken.
    fn see(&mut self, here: Here, heads: &Heads, rows: &[Row<'_>], parts: &[Part]) {
        for parts in parts.chunks(ROWS) {
            let of = |query: usize| &rows[query / heads.heads].q[query % heads.heads * heads.k_width..][..heads.k_width];
            let mut q = [&[][..]; ROWS];
            q.iter_mut().zip(parts).for_each(|(q, part)| *q = of(part.query));
            let strips = Range {
                start: parts.iter().map(|part| part.seen.start / STRIP).min().unwrap_or(0),
                end: parts.iter().map(|part| part.seen.end.div_ceil(STRIP)).max().unwrap_or(0),
            };
            let keys = &self.key_units[strips.start * heads.k_width..];
            let keys = Units { units: keys, step: 1, apart: heads.k_width, strips: strips.len() };
            let at: [usize; ROWS] = std::array::from_fn(|part| part * BLOCK / STRIP + strips.start);
            self.scores.clear();
            self.scores.resize(ROWS * BLOCK / STRIP, Unit::ZERO);
            product(here, keys, &q[..parts.len()], &mut self.scores, &at[..parts.len()]);
            for (part, scores) in parts.iter().zip(self.scores.chunks_exact_mut(BLOCK / STRIP)) {
                let (max, total) = (&mut self.max[part.query], &mut self.total[part.query]);
                let before = *max;
                let sum = attend_rows::weigh(here, scores, part.seen.clone(), heads.scale, max);
                let factor = expf::exp(before - *max);
                *total = total.mul_add(factor, sum);
                if factor != 1.0 {
                    attend_rows::scale(here, &mut self.y[part.query * heads.v_units()..][..heads.v_units()], factor);
                }
            }
            self.weigh_values(here, heads, parts);
        }
    }

    /// Adds the weighed rows of V. A row that a query does not see stays out, whatever it holds: what all of the queries see is taken
    /// together, and the rows before and after it query by query.
    fn weigh_values(&mut self, here: Here, heads: &Heads, parts: &[Part]) {
        let common = Range {
            start: parts.iter().map(|part| part.seen.start).max().unwrap_or(0),
            end: parts.iter().map(|part| part.seen.end).min().unwrap_or(0),
        };
        let units = heads.v_units();
        let weights: &[f32] = bytemuck::cast_slice(&self.scores);
        let at: [usize; ROWS] = std::array::from_fn(|index| parts.get(index).map_or(0, |part| part.query * units));
        let (values, y) = (&self.values, &mut self.y);
        let mut add = |which: Range<usize>, seen: Range<usize>| {
            let mut x = [&[][..]; ROWS];
            x.iter_mut().zip(which.clone()).for_each(|(x, part)| *x = &weights[part * BLOCK..][seen.clone()]);
            let values = Units { units: &values[seen.start * units..], step: units, apart: 1, strips: units };
            product(here, values, &x[..which.len()], y, &at[which]);
        };
        if common.is_empty() {
            parts.iter().enumerate().for_each(|(index, part)| add(index..index + 1, part.seen.clone()));
            return;
        }
        let alone = |part: &Part| (part.seen.start..common.start, common.end..part.seen.end);
        for (index, part) in parts.iter().enumerate().filter(|(_, part)| part.seen.start < common.start) {
            add(index..index + 1, alone(part).0);
        }
        add(0..parts.len(), common.clone());
        for (index, part) in parts.iter().enumerate().filter(|(_, part)| common.end < part.seen.end) {
            add(index..index + 1, alone(part).1);
        }
    }
}

/// Row `i` of `out` becomes the heads of row `i` side by side; a row that sees nothing gives 0. `sinks` has a score for each head, or none.
///
/// All rows see the same sources: those of one conversation.
///
/// # Panics
/// When a slice has another size than `heads` says, when a row is seen that is not stored, or when the machine lacks the level.
pub fn prompt(
    level: Level,
    heads: &Heads,
    sources: &[Source<'_>],
    rows: &[Row<'_>],
    sinks: &[f32],
    scratch: &mut Scratch,
    out: &mut Pane<'_>,
) {
    let here = Here::new(level);
    assert_eq!((out.rows(), out.cols()), (rows.len(), heads.heads * heads.v_width), "the size of attention's output");
    assert!(rows.iter().all(|row| row.q.len() == heads.heads * heads.k_width), "the size of queries");
    assert!(sinks.is_empty() || sinks.len() == heads.heads, "a sink for each head");
    let queries = rows.len() * heads.heads;
    scratch.reset(heads, BLOCK);
    scratch.max.clear();
    scratch.max.resize(queries, f32::NEG_INFINITY);
    scratch.total.clear();
    scratch.total.resize(queries, 0.0);
    scratch.y.clear();
    scratch.y.resize(queries * heads.v_units(), Unit::ZERO);
    for (index, source) in sources.iter().enumerate() {
        rows.iter().for_each(|row| source.check(index, &row.seen[index]));
        in_order(here, heads, index, source, rows, scratch);
        by_lists(here, heads, index, source, rows, scratch);
    }
    for row in 0..rows.len() {
        for (head, y) in out.row_mut(row).chunks_exact_mut(heads.v_width).enumerate() {
            let query = row * heads.heads + head;
            finish(here, scratch, query, sinks.get(head).copied(), y);
        }
    }
}

/// The rows of a source that rows see in order, block after block.
fn in_order(here: Here, heads: &Heads, index: usize, source: &Source<'_>, rows: &[Row<'_>], scratch: &mut Scratch) {
    let seen = |row: &Row<'_>| match &row.seen[index] {
        Seen::Rows(seen) => seen.clone(),
        Seen::List(_) => 0..0,
    };
    let all = || rows.iter().map(seen).filter(|seen| !seen.is_empty());
    let (Some(first), Some(end)) = (all().map(|seen| seen.start).min(), all().map(|seen| seen.end).max()) else { return };
    let mut parts = vec![];
    for block in first / BLOCK..end.div_ceil(BLOCK) {
        parts.clear();
        for (row, seen) in rows.iter().map(seen).enumerate() {
            let seen = seen.start.max(block * BLOCK)..seen.end.min((block + 1) * BLOCK);
            if !seen.is_empty() {
                let queries = row * heads.heads..(row + 1) * heads.heads;
                let seen = seen.start - block * BLOCK..seen.end - block * BLOCK;
                parts.extend(queries.map(|query| Part { query, seen: seen.clone() }));
            }
        }
        let start = parts.iter().map(|part| part.seen.start).min().unwrap_or(0);
        let end = parts.iter().map(|part| part.seen.end).max().unwrap_or(0);
        if start < end {
            let places = std::iter::successors(Some(source.at(block * BLOCK + start)), |at| Some(source.after(*at)));
            scratch.take(here, heads, source, start..end, places);
            scratch.see(here, heads, rows, &parts);
        }
    }
}

/// The rows of a source that rows see by a list: a block of so many entries, less those that are none.
fn by_lists(here: Here, heads: &Heads, index: usize, source: &Source<'_>, rows: &[Row<'_>], scratch: &mut Scratch) {
    for (row, of) in rows.iter().enumerate() {
        let Seen::List(list) = of.seen[index] else { continue };
        for entries in list.chunks(BLOCK) {
            let mut stored = [(0, 0); BLOCK];
            let count = listed(source, entries, &mut stored);
            if count > 0 {
                scratch.take(here, heads, source, 0..count, stored[..count].iter().copied());
                let queries = row * heads.heads..(row + 1) * heads.heads;
                let parts: Vec<Part> = queries.map(|query| Part { query, seen: 0..count }).collect();
                scratch.see(here, heads, rows, &parts);
            }
        }
    }
}

/// Where the rows are that entries of a list name; says how many.
pub(super) fn listed(source: &Source<'_>, entries: &[i32], places: &mut [At]) -> usize {
    let named = entries.iter().filter(|entry| **entry != -1);
    let of = |entry: &i32| usize::try_from(*entry).unwrap_or_else(|_| panic!("{entry} in a list is neither a row nor -1"));
    places.iter_mut().zip(named).map(|(at, entry)| *at = source.at(of(entry))).count()
}

/// Writes a query's result.
fn finish(here: Here, scratch: &mut Scratch, query: usize, sink: Option<f32>, to: &mut [f32]) {
    let units = to.len().div_ceil(STRIP);
    let y = &mut scratch.y[query * units..][..units];
    let (max, mut total) = (scratch.max[query], scratch.total[query]);
    let mut factor = 1.0;
    // Nothing was seen; a block that is seen gives a sum of at least 1, or a NaN.
    if total == 0.0 {
        return to.fill(0.0);
    }
    if let Some(sink) = sink {
        let most = if sink > max { sink } else { max };
        factor = expf::exp(max - most);
        total = total.mul_add(factor, expf::exp(sink - most));
    }
    attend_rows::scale(here, y, factor);
    let y: &[f32] = bytemuck::cast_slice(y);
    to.iter_mut().zip(y).for_each(|(to, y)| *to = y / total);
}
