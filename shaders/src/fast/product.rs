//! A matrix times rows of activations in fast mode: the choice of kernel by row class and format, and the cut into work for threads.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::float_gemm;
use super::gemm::{BLOCK, gemm};
use super::gemm_pane::Pane;
use super::gemv::gemv;
use super::{Acts, Level, ThreadScratch};
use crate::contract::{Fast, RowClass, Team, share};
use crate::formats::{Format, WeightView};

/// Weight rows that are worth a turn of a thread, in a step.
const STEP_ROWS: usize = 32;

/// Pieces of a step's work for each thread, so that one that was held up does not hold up the others.
const PIECES: usize = 8;

/// Rows of activations, ready for the weights of one op: int8, and f32 for weights that are floats.
#[derive(Clone, Copy)]
pub struct Operand<'a> {
    /// The rows in int8.
    pub acts: &'a Acts,
    /// The same rows as they were, one after the other.
    pub rows: &'a [f32],
}

/// Makes rows ready for weights of some formats: what [`Operand`] needs for them.
pub fn load<'a>(
    team: &dyn Team,
    formats: impl Iterator<Item = Format>,
    (rows, cols): (usize, usize),
    row: &(dyn Fn(usize) -> &'a [f32] + Sync),
    acts: &mut Acts,
    flat: &mut Vec<f32>,
) {
    let (mut floats, mut whole) = (false, false);
    formats.for_each(|format| if format.panel().is_some() { whole = true } else { floats = true });
    if floats {
        flat.clear();
        (0..rows).for_each(|index| flat.extend_from_slice(row(index)));
    }
    if whole {
        acts.reset(rows, cols);
        acts.set_all(team, row);
    }
}

/// Weight rows of a piece of work.
pub fn piece(class: RowClass, rows: usize, threads: usize) -> usize {
    match class {
        RowClass::Prompt => BLOCK,
        RowClass::Step => rows.div_ceil(PIECES * threads).next_multiple_of(STEP_ROWS),
    }
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
    match (fast.class, w.format().panel()) {
        (RowClass::Prompt, Some(_)) => gemm(fast.level, w, rows, x.acts, of, &mut own.packed, out),
        (RowClass::Step, Some(_)) => step(fast.level, w, rows, x.acts, of, &mut own.product, out),
        (RowClass::Prompt, None) => {
            let x: Vec<&[f32]> = of.iter().map(|row| &x.rows[*row as usize * w.cols()..][..w.cols()]).collect();
            float_gemm::gemm(fast.level, w, rows, &x, &mut own.floats, out);
        }
        (RowClass::Step, None) => floats(w, rows, x.rows, of, &mut own.product, out),
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

/// Weights that are floats, row by row.
fn floats(w: &WeightView<'_>, rows: Range<usize>, x: &[f32], of: &[u32], decoded: &mut Vec<f32>, out: &mut Pane<'_>) {
    let cols = w.cols();
    decoded.resize(cols, 0.0);
    for (col, row) in rows.enumerate() {
        w.decode_row(row, decoded);
        for (to, of) in of.iter().enumerate() {
            out.row_mut(to)[col] = crate::sums::dot(decoded, &x[*of as usize * cols..][..cols]);
        }
    }
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
