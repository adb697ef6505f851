//! From the values that a matrix is cut from to all its bytes: values, then scales.
//!
//! Scales follow from values by one rule: a row of values belongs to a row of scales of its tensor. Where the rows of the matrix share
//! scales in the same places as those of the tensor, whole rows of scales are taken; where the matrix is cut through rows that share
//! scales, each of its rows gets them for itself, and the format becomes the one that says so.

use coli_shaders::formats::Format;

use crate::checkpoint::{Checkpoint, Place};
use crate::view::{Run, Selection, has_scales};

/// Bytes of a stored tensor, read once and repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Span {
    /// Position in the checkpoint's tensors.
    pub(crate) tensor: usize,
    /// Whether they are of its scales.
    pub(crate) scales: bool,
    /// From the start of its values, or of its scales.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// How many times they stand in memory, one after the other.
    pub(crate) times: u64,
}

impl Span {
    /// Where the bytes are stored.
    pub(crate) fn place(&self, checkpoint: &Checkpoint) -> Place {
        let tensor = &checkpoint.tensors()[self.tensor];
        let all = if self.scales { tensor.scales.unwrap_or(tensor.values) } else { tensor.values };
        Place { offset: all.offset + self.offset, bytes: self.bytes, ..all }
    }

    /// Bytes in memory.
    pub(crate) fn total(&self) -> Option<u64> {
        self.bytes.checked_mul(self.times)
    }
}

/// The format of a selection as a matrix, and its bytes. `None` where the format has no such rows.
pub(crate) fn of(selection: &Selection) -> Option<(Format, Vec<Span>)> {
    let runs = joined(&selection.runs);
    let mut spans: Vec<Span> =
        runs.iter().map(|run| Span { tensor: run.tensor, scales: false, offset: run.offset, bytes: run.bytes, times: 1 }).collect();
    if !has_scales(selection.format) {
        return Some((selection.format, spans));
    }
    let cols = usize::try_from(*selection.dims.last()?).ok()?;
    let row_bytes = selection.format.row_bytes(cols)? as u64;
    let shared = Shared { rows: selection.format.scale_rows() as u64, bytes: selection.format.scale_bytes(cols)? as u64 };
    let strips: Vec<Strip> = runs.iter().map(|run| Strip::of(run, row_bytes)).collect::<Option<_>>()?;
    let format = if shared.keeps(&strips) {
        spans.extend(strips.iter().map(|strip| shared.whole(strip)));
        selection.format
    } else {
        strips.iter().for_each(|strip| shared.repeated(strip, &mut spans));
        selection.format.with_scales_per_row()?
    };
    Some((format, spans))
}

/// Runs that continue one another are one.
fn joined(runs: &[Run]) -> Vec<Run> {
    let mut joined: Vec<Run> = Vec::with_capacity(runs.len());
    for run in runs {
        match joined.last_mut() {
            Some(last) if last.tensor == run.tensor && last.offset + last.bytes == run.offset => last.bytes += run.bytes,
            _ => joined.push(*run),
        }
    }
    joined
}

/// Rows of a stored tensor.
struct Strip {
    tensor: usize,
    first: u64,
    rows: u64,
    /// Rows of each of the tensor's matrices.
    matrix_rows: u64,
}

impl Strip {
    fn of(run: &Run, row_bytes: u64) -> Option<Self> {
        let (first, rows) = (run.offset.checked_div(row_bytes)?, run.bytes.checked_div(row_bytes)?);
        let whole = first * row_bytes == run.offset && rows * row_bytes == run.bytes && run.matrix_rows > 0;
        whole.then_some(Self { tensor: run.tensor, first, rows, matrix_rows: run.matrix_rows })
    }
}

/// How rows of a format share scales.
struct Shared {
    /// Rows that share a row of scales.
    rows: u64,
    /// Bytes of a row of scales.
    bytes: u64,
}

impl Shared {
    /// Whether rows that share scales in the tensors are those that share them in the matrix.
    fn keeps(&self, strips: &[Strip]) -> bool {
        let mut at = 0u64;
        strips.iter().enumerate().all(|(index, strip)| {
            let within = strip.first % strip.matrix_rows;
            let one_matrix = within + strip.rows <= strip.matrix_rows || strip.matrix_rows.is_multiple_of(self.rows);
            let begins = at.is_multiple_of(self.rows) && within.is_multiple_of(self.rows);
            at = at.saturating_add(strip.rows);
            begins && one_matrix && (index + 1 == strips.len() || strip.rows.is_multiple_of(self.rows))
        })
    }

    /// The tensor's row of scales for a row of values.
    fn index(&self, strip: &Strip, row: u64) -> u64 {
        row / strip.matrix_rows * strip.matrix_rows.div_ceil(self.rows) + row % strip.matrix_rows / self.rows
    }

    fn whole(&self, strip: &Strip) -> Span {
        let (first, last) = (self.index(strip, strip.first), self.index(strip, strip.first + strip.rows - 1));
        Span { tensor: strip.tensor, scales: true, offset: first * self.bytes, bytes: (last - first + 1) * self.bytes, times: 1 }
    }

    /// The scales of each row for itself.
    fn repeated(&self, strip: &Strip, spans: &mut Vec<Span>) {
        let (mut row, end) = (strip.first, strip.first + strip.rows);
        while row < end {
            let within = row % strip.matrix_rows;
            let last = (within / self.rows * self.rows + self.rows).min(strip.matrix_rows);
            let next = (row + last - within).min(end);
            let offset = self.index(strip, row) * self.bytes;
            spans.push(Span { tensor: strip.tensor, scales: true, offset, bytes: self.bytes, times: next - row });
            row = next;
        }
    }
}
