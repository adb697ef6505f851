//! The step's words: what a frame finds that changes from step to step, in one buffer.
//!
//! From the front: the fault that kernels report; the pages' addresses, whose place and room are the same for every frame; then what
//! depends on the frame's caps: the rows of the step and of the wanted ones, how tokens are chosen, row inputs, tables of rows, grids, and
//! the entries that say where conversations' pages are. The layout is known when a frame is recorded, so that commands hold its offsets.

use std::ops::Range;

use coli_shaders::contract::{RowAt, Sampling};
use coli_shaders::device::{Extent, FillRow, Grid, SAMPLING_WORDS, Seen};

use crate::program::{Program, Rows};

/// Words of the fault: its key, code and detail.
pub(super) const FAULT_WORDS: usize = 4;
/// No fault.
pub(super) const NO_FAULT: u32 = u32::MAX;

/// Most rows of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Caps {
    pub tokens: u32,
    pub outs: u32,
}

impl Caps {
    pub fn of(self, rows: Rows) -> u32 {
        if rows == Rows::Tokens { self.tokens } else { self.outs }
    }
}

/// A table that the host fills for the rows of a step.
pub(super) struct StepTable {
    pub key: Vec<u8>,
    /// The row input that it is made from, and which of its columns.
    pub input: usize,
    pub columns: Range<usize>,
    pub width: usize,
    pub rows: Rows,
    pub fill: FillRow,
}

/// A grid that the step says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StepGrid {
    pub grid: Grid,
    pub rows: Rows,
}

/// Where everything is, in words.
pub(super) struct Words {
    pub caps: Caps,
    /// Where addresses of pages may stand.
    pub pages: Range<usize>,
    /// What belongs to the frame: copied to the device for each step.
    pub front: Range<usize>,
    pub rows: [usize; 2],
    pub sampling: usize,
    /// By the program's number of the input.
    pub inputs: Vec<usize>,
    pub tables: Vec<usize>,
    pub grids: Vec<usize>,
    /// By class.
    pub entries: Vec<usize>,
    pub accumulators: usize,
}

/// Words before the rows of a block of rows.
const ROWS_HEAD: usize = 4;

impl Words {
    /// The layout for a frame.
    pub fn new(program: &Program, caps: Caps, pages: usize, classes: usize, tables: &[StepTable], grids: usize) -> Self {
        let mut end = FAULT_WORDS + pages;
        let start = end;
        let mut take = |words: usize| {
            let at = end;
            // What kernels read as vectors begins at a multiple of 16 bytes.
            end = (at + words).next_multiple_of(4);
            at
        };
        let rows = [Rows::Tokens, Rows::Outs].map(|rows| take(ROWS_HEAD + 4 * caps.of(rows) as usize));
        let sampling = take((SAMPLING_WORDS * caps.outs) as usize);
        let inputs = program.inputs.iter().map(|input| take(input.width * caps.of(input.rows) as usize)).collect();
        let tables = tables.iter().map(|table| take(table.width * caps.of(table.rows) as usize)).collect();
        let grids = (0..grids).map(|_| take(4)).collect();
        let entries = (0..classes).map(|_| take(4 * caps.tokens as usize)).collect();
        let accumulators = take(4 * caps.tokens as usize);
        let pages = FAULT_WORDS..FAULT_WORDS + pages;
        Self { caps, pages, front: start..end, rows, sampling, inputs, tables, grids, entries, accumulators }
    }

    /// Where the rows of a domain are.
    pub fn rows_at(&self, rows: Rows) -> usize {
        self.rows[usize::from(rows == Rows::Outs)]
    }

    /// Writes rows; `first` is the row of the whole step that is the first of them. Conversations are numbered as `convs` lists them.
    pub fn put_rows(&self, to: &mut [u32], rows: Rows, at: &[RowAt], first: usize, convs: &[u32]) {
        let start = self.rows_at(rows);
        to[start] = at.len() as u32;
        to[start + 1] = first as u32;
        for (row, at) in at.iter().enumerate() {
            let conv = convs.iter().position(|conv| *conv == at.conv).unwrap_or(0) as u32;
            to[start + ROWS_HEAD + 4 * row..][..4].copy_from_slice(&[conv, at.pos, at.step_row, 0]);
        }
    }

    pub fn put_sampling(&self, to: &mut [u32], sampling: &[Sampling]) {
        for (row, sampling) in sampling.iter().enumerate() {
            let words = [
                sampling.temperature.to_bits(),
                sampling.top_k,
                sampling.top_p.to_bits(),
                sampling.min_p.to_bits(),
                sampling.seed as u32,
                (sampling.seed >> 32) as u32,
                0,
                0,
            ];
            to[self.sampling + SAMPLING_WORDS as usize * row..][..words.len()].copy_from_slice(&words);
        }
    }

    /// Writes a grid for these rows.
    pub fn put_grid(&self, to: &mut [u32], number: usize, grid: &StepGrid, rows: &[RowAt]) {
        for (axis, extent) in grid.grid.iter().enumerate() {
            to[self.grids[number] + axis] = workgroups(*extent, self.caps.of(grid.rows), rows);
        }
    }
}

/// Workgroups along an axis, for a cap of rows and, where the step says it, for its rows.
pub(super) fn workgroups(extent: Extent, cap: u32, rows: &[RowAt]) -> u32 {
    match extent {
        Extent::Fixed(count) => count.max(1),
        Extent::Rows { per, times } => cap.div_ceil(per).saturating_mul(times).max(1),
        Extent::Seen { seen, per, times, plus } => {
            let most = rows.iter().map(|at| rows_seen(seen, at.pos)).max().unwrap_or(0);
            most.div_ceil(per).saturating_mul(times).saturating_add(plus).max(1)
        }
    }
}

fn rows_seen(seen: Seen, pos: u32) -> u32 {
    let complete = (u64::from(pos) + 1) / u64::from(seen.stride);
    let complete = u32::try_from(complete).unwrap_or(u32::MAX);
    if seen.window == 0 { complete } else { complete.min(seen.window) }
}

/// Whether the step says how large a grid is.
pub(super) fn is_live(grid: &Grid) -> bool {
    grid.iter().any(|extent| matches!(extent, Extent::Seen { .. }))
}
