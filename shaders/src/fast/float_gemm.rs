//! Prompts with matrices of floats: f32 activations against rows that are decoded to f32, by the order of "Prompts" in [`super`].
//!
//! As in [`super::gemm`], rows are packed in strips side by side, once for all rows of activations, and a number of the result depends on
//! its own two rows alone.

use std::ops::Range;

use super::float_gemm_tile::{ROWS, Units, product};
use super::gemm::{BLOCK, STRIP, Unit};
use super::gemm_words::{self, Here};
use super::{Level, Pane, attend_rows};
use crate::contract::Stored;
use crate::formats::{Format, WeightView};

/// Columns that are taken together, so that a block's part stays in a second-level cache.
const COLS: usize = 1024;

/// Weight rows as f32 in the form that kernels read, and memory for making it, which is used again.
#[derive(Debug, Default)]
pub struct FloatPacked {
    rows: usize,
    cols: usize,
    /// Of each strip, of each column.
    units: Vec<Unit>,
    /// A strip's rows.
    scratch: Vec<f32>,
}

impl FloatPacked {
    /// Packs some rows of a matrix of any format. What was packed is gone.
    ///
    /// # Panics
    /// When the matrix lacks the rows, or the machine lacks the level.
    pub fn pack(&mut self, level: Level, w: &WeightView<'_>, rows: Range<usize>) {
        let here = Here::new(level);
        assert!(rows.start <= rows.end && rows.end <= w.rows(), "rows {rows:?} of {}", w.rows());
        (self.rows, self.cols) = (rows.len(), w.cols());
        self.units.resize(self.rows.div_ceil(STRIP) * self.cols, Unit::ZERO);
        self.scratch.resize(STRIP * self.cols, 0.0);
        for (strip, first) in rows.clone().step_by(STRIP).enumerate() {
            let count = STRIP.min(rows.end - first);
            for row in 0..count {
                let (to, at) = (&mut self.scratch[row * self.cols..][..self.cols], first + row);
                // Halves have instructions of their own, where their bytes lie as halves do.
                match bytemuck::try_cast_slice(w.row(at).0) {
                    Ok(halves) if w.format() == Format::F16 => attend_rows::decode(here, Stored::Half(halves), to),
                    _ => w.decode_row(at, to),
                }
            }
            // A strip that is not full ends in rows of zeros.
            self.scratch[count * self.cols..].fill(0.0);
            let units = &mut self.units[strip * self.cols..][..self.cols];
            gemm_words::interleave(here, bytemuck::cast_slice(&self.scratch), self.cols, units);
        }
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }
}

/// Row `i` of `out` becomes `x[i]` times the packed rows.
///
/// # Panics
/// When `out` has other rows than `x` or other columns than there are packed rows, when a row of `x` has another length than they, or when
/// the machine lacks the level.
pub fn multiply(level: Level, packed: &FloatPacked, x: &[&[f32]], out: &mut Pane<'_>) {
    let here = Here::new(level);
    assert_eq!((out.rows(), out.cols()), (x.len(), packed.rows), "the size of a product");
    assert!(x.iter().all(|x| x.len() == packed.cols), "rows of {} numbers", packed.cols);
    (0..out.rows()).for_each(|row| out.row_mut(row).fill(0.0));
    let strips = packed.rows.div_ceil(STRIP);
    let mut sums = vec![Unit::ZERO; ROWS * strips];
    let at: [usize; ROWS] = std::array::from_fn(|row| row * strips);
    for first in (0..packed.cols).step_by(COLS) {
        let cols = first..packed.cols.min(first + COLS);
        let units = Units { units: &packed.units[first..], step: 1, apart: packed.cols, strips };
        for (tile, x) in x.chunks(ROWS).enumerate() {
            let mut of = [&[][..]; ROWS];
            of.iter_mut().zip(x).for_each(|(of, x)| *of = &x[cols.clone()]);
            let rows = |row: usize| (tile * ROWS + row, at[row] * STRIP);
            // Sums wait in the output between one range of columns and the next.
            for (row, from) in (0..x.len()).map(rows) {
                bytemuck::cast_slice_mut::<_, f32>(&mut sums)[from..][..packed.rows].copy_from_slice(out.row_mut(row));
            }
            product(here, units, &of[..x.len()], &mut sums, &at[..x.len()]);
            for (row, from) in (0..x.len()).map(rows) {
                out.row_mut(row).copy_from_slice(&bytemuck::cast_slice::<_, f32>(&sums)[from..][..packed.rows]);
            }
        }
    }
}

/// Row `i` of `out` becomes `x[i]` times some rows of a matrix, which are packed a block at a time.
///
/// # Panics
/// As [`FloatPacked::pack`] and [`multiply`] do.
pub fn gemm(level: Level, w: &WeightView<'_>, rows: Range<usize>, x: &[&[f32]], packed: &mut FloatPacked, out: &mut Pane<'_>) {
    assert_eq!(out.cols(), rows.len(), "columns of a product");
    for first in rows.clone().step_by(BLOCK) {
        let block = first..rows.end.min(first + BLOCK);
        packed.pack(level, w, block.clone());
        multiply(level, packed, x, &mut out.columns(block.start - rows.start..block.end - rows.start));
    }
}
