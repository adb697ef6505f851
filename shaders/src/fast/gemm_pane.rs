//! Where prompts' results go: columns of a matrix that one thread may write while others write beside it.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;

/// A range of columns of the rows of a matrix. Panes of one matrix never overlap, so each may go to a thread of its own.
///
/// Invariant: for every `row < rows`, the numbers `start + row * stride .. + cols` lie in a slice that this pane alone borrows for `'a`.
#[derive(Debug)]
pub struct Pane<'a> {
    start: *mut f32,
    rows: usize,
    stride: usize,
    cols: usize,
    of: PhantomData<&'a mut [f32]>,
}

// SAFETY: a pane is a `&mut` of its numbers, which no other pane reaches, and f32 is Send.
unsafe impl Send for Pane<'_> {}

// SAFETY: a shared pane only tells its size.
unsafe impl Sync for Pane<'_> {}

impl<'a> Pane<'a> {
    /// A whole matrix: rows of `cols` numbers.
    ///
    /// # Panics
    /// When the numbers are not whole rows.
    pub fn new(numbers: &'a mut [f32], cols: usize) -> Self {
        assert!(cols > 0 && numbers.len().is_multiple_of(cols), "{} numbers in rows of {cols}", numbers.len());
        Self { start: numbers.as_mut_ptr(), rows: numbers.len() / cols, stride: cols, cols, of: PhantomData }
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of a row.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The first `cols` columns, and the others.
    ///
    /// # Panics
    /// When there are fewer.
    pub fn split_at(self, cols: usize) -> (Self, Self) {
        assert!(cols <= self.cols, "a cut at {cols} of {} columns", self.cols);
        let second = Self { start: self.start.wrapping_add(cols), cols: self.cols - cols, ..self };
        (Self { cols, ..self }, second)
    }

    /// Panes of `cols` columns side by side, the last of what is left.
    pub fn split_every(self, cols: usize) -> impl Iterator<Item = Self> {
        let mut left = Some(self);
        std::iter::from_fn(move || {
            let pane = left.take().filter(|pane| pane.cols > 0)?;
            let (first, others) = {
                let cut = cols.clamp(1, pane.cols);
                pane.split_at(cut)
            };
            left = Some(others);
            Some(first)
        })
    }

    /// Some of its columns, as long as they are borrowed.
    ///
    /// # Panics
    /// When there are no such columns.
    pub fn columns(&mut self, range: Range<usize>) -> Pane<'_> {
        assert!(range.start <= range.end && range.end <= self.cols, "columns {range:?} of {}", self.cols);
        Pane { start: self.start.wrapping_add(range.start), cols: range.len(), of: PhantomData, ..*self }
    }

    /// A row.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        // SAFETY: the type's invariant: these numbers are borrowed mutably by this pane alone, and the result borrows the pane.
        unsafe { std::slice::from_raw_parts_mut(self.start.wrapping_add(row * self.stride), self.cols) }
    }
}
