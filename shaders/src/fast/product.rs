//! A matrix times rows of activations in fast mode: the choice of kernel by row class and format, and the cut into work for threads.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::float_gemm;
use super::gemm::{BLOCK, gemm};
use super::gemm_pane::Pane;
use super::gemv::gemv;
use super::gemv_float::gemv_float;
use super::{Acts, Level, ThreadScratch};
use crate::contract::{Fast, RowClass, Team, share};
use crate::formats::{Format, WeightView};

/// Weight rows that are worth a turn of a thread, in a step.
const STEP_ROWS: usize = 32;

/// Pieces of rows for each thread, so that one that was held up does not hold up the others.
const PIECES: usize = 8;

/// Rows of activations, for the weights of one op.
#[derive(Clone, Copy)]
pub struct Operand<'a> {
    /// The rows in int8; `None` where weights of every format are taken as floats.
    pub acts: Option<&'a Acts>,
    /// The rows as they are, for weights that are floats.
    pub row: &'a (dyn Fn(usize) -> &'a [f32] + Sync),
}

impl<'a> Operand<'a> {
    /// `rows` rows of `cols` numbers, in int8 where a weight is of a format that wants them so.
    pub fn new(
        team: &dyn Team,
        mut formats: impl Iterator<Item = Format>,
        (rows, cols): (usize, usize),
        row: &'a (dyn Fn(usize) -> &'a [f32] + Sync),
        acts: &'a mut Acts,
    ) -> Self {
        if !formats.any(|format| format.panel().is_some()) {
            return Self { acts: None, row };
        }
        acts.reset(rows, cols);
        acts.set_all(team, row);
        Self { acts: Some(acts), row }
    }
}

/// Cuts the rows of some matrices into pieces of work, in order: for each piece the matrix and its rows. The first pieces are large and the
/// last ones small, so that memory is read in long runs and the threads end together all the same.
pub fn pieces(class: RowClass, matrices: impl Iterator<Item = usize> + Clone, threads: usize) -> Vec<(usize, Range<usize>)> {
    let least = if class == RowClass::Prompt { BLOCK } else { STEP_ROWS };
    let mut left: usize = matrices.clone().sum();
    let mut pieces = vec![];
    for (matrix, rows) in matrices.enumerate() {
        let mut first = 0;
        while first < rows {
            let fair = left.div_ceil(2 * threads).max(least).next_multiple_of(least);
            // What would be left of the matrix is no piece of its own.
            let end = if first + fair + least > rows { rows } else { first + fair };
            pieces.push((matrix, first..end));
            left -= end - first;
            first = end;
        }
    }
    pieces
}

/// Products of some weight rows with some rows of activations: `out` has a row for each of `of`, in their order, and a column for each
/// weight row.
pub fn product(
    fast: &Fast<'_>,
    w: &WeightView<'_>,
    rows: Range<usize>,
    x: Operand<'_>,
    of: &[u32],
    own: &mut ThreadScratch,
    out: &mut Pane<'_>,
) {
    match (fast.class, x.acts.filter(|_| w.format().panel().is_some())) {
        (RowClass::Prompt, Some(acts)) => gemm(fast.level, w, rows, acts, of, &mut own.packed, out),
        (RowClass::Step, Some(acts)) => step(fast.level, w, rows, acts, of, &mut own.product, out),
        (class, None) => {
            let x: Vec<&[f32]> = of.iter().map(|row| (x.row)(*row as usize)).collect();
            match class {
                RowClass::Prompt => float_gemm::gemm(fast.level, w, rows, &x, &mut own.floats, out),
                RowClass::Step => {
                    let count = rows.len();
                    own.product.resize(x.len() * count, 0.0);
                    gemv_float(fast.level, w, rows, &x, &mut own.product);
                    own.product.chunks_exact(count).enumerate().for_each(|(row, y)| out.row_mut(row).copy_from_slice(y));
                }
            }
        }
    }
}

/// Rows that follow each other share each weight row.
fn step(level: Level, w: &WeightView<'_>, rows: Range<usize>, acts: &Acts, of: &[u32], numbers: &mut Vec<f32>, out: &mut Pane<'_>) {
    let count = rows.len();
    let mut first = 0;
    for run in of.chunk_by(|a, b| a + 1 == *b) {
        let start = run[0] as usize;
        numbers.resize(run.len() * count, 0.0);
        gemv(level, w, rows.clone(), acts, start..start + run.len(), numbers);
        for (row, numbers) in numbers.chunks_exact(count).enumerate() {
            out.row_mut(first + row).copy_from_slice(numbers);
        }
        first += run.len();
    }
}

/// The panes of a matrix for some pieces of its columns, which follow each other from the first column.
pub fn panes<'a>(whole: Pane<'a>, pieces: impl Iterator<Item = Range<usize>>) -> impl Iterator<Item = Pane<'a>> {
    let mut left = Some(whole);
    pieces.filter_map(move |piece| {
        let (pane, others) = left.take()?.split_at(piece.len());
        left = Some(others);
        Some(pane)
    })
}

/// Gives out panes of a matrix to the threads of a team: `work` gets the number of the pane, the pane, and the thread.
pub fn share_panes<'a>(team: &dyn Team, panes: impl Iterator<Item = Pane<'a>>, work: &(dyn Fn(usize, Pane<'a>, usize) + Sync)) {
    let panes: Vec<Mutex<Option<Pane<'a>>>> = panes.map(|pane| Mutex::new(Some(pane))).collect();
    share(team, panes.len(), &|index, thread| {
        let pane = panes[index].lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(pane) = pane {
            work(index, pane, thread);
        }
    });
}

/// Rows that are worth a turn of a thread.
const ROWS: usize = 8;

/// Gives out rows of a matrix of `width` numbers a row to the threads of a team: `work` gets the first row's number, the rows, and the
/// thread.
pub fn share_rows<T: Send>(team: &dyn Team, numbers: &mut [T], width: usize, work: &(dyn Fn(usize, &mut [T], usize) + Sync)) {
    let rows = numbers.len().checked_div(width).unwrap_or(0);
    let each = rows.div_ceil(PIECES * team.threads()).max(ROWS);
    let pieces: Vec<_> = numbers.chunks_mut((each * width).max(1)).map(|piece| Mutex::new(Some(piece))).collect();
    share(team, pieces.len(), &|index, thread| {
        if let Some(piece) = pieces[index].lock().unwrap_or_else(PoisonError::into_inner).take() {
            work(index * each, piece, thread);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_every_row_once_and_end_small() {
        for (class, least) in [(RowClass::Step, STEP_ROWS), (RowClass::Prompt, BLOCK)] {
            for matrices in [vec![2048], vec![1, 31, 33, 500], vec![1024; 8], vec![50304], vec![]] {
                for threads in [1, 2, 16] {
                    let pieces = pieces(class, matrices.iter().copied(), threads);
                    let mut next = vec![0; matrices.len()];
                    for (matrix, rows) in &pieces {
                        assert_eq!(next[*matrix], rows.start);
                        assert!(rows.start.is_multiple_of(least) && !rows.is_empty());
                        next[*matrix] = rows.end;
                    }
                    assert_eq!(next, matrices);
                    let last = pieces.last().map_or(0, |(_, rows)| rows.len());
                    assert!(last < 2 * least, "{pieces:?}");
                }
            }
        }
    }
}
