//! A matrix of stored weights.

use super::Format;
use crate::fast::Level;

/// A matrix of stored weights: `rows` rows of `cols` numbers in one format. A vector is a matrix of one row.
#[derive(Debug, Clone, Copy)]
pub struct WeightView<'a> {
    format: Format,
    rows: usize,
    cols: usize,
    row_bytes: usize,
    scale_bytes: usize,
    bytes: &'a [u8],
}

impl<'a> WeightView<'a> {
    /// A view of `bytes`, or `None` where they are not exactly a matrix: its values, then its scales.
    pub fn new(format: Format, rows: usize, cols: usize, bytes: &'a [u8]) -> Option<Self> {
        let (row_bytes, scale_bytes) = (format.row_bytes(cols)?, format.scale_bytes(cols)?);
        (format.matrix_bytes(rows, cols)? == bytes.len()).then_some(Self { format, rows, cols, row_bytes, scale_bytes, bytes })
    }

    /// Its format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Numbers a row.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Bytes of the whole matrix.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes as they are stored: values, then scales.
    pub fn stored(&self) -> &'a [u8] {
        self.bytes
    }

    /// Decodes row `index`.
    ///
    /// # Panics
    /// When the row does not exist or `out` is not one row long.
    pub fn decode_row(&self, index: usize, out: &mut [f32]) {
        let (values, scales) = self.row(index);
        self.format.decode_row(values, scales, out);
    }

    /// The same with the instructions of a level that the machine has.
    pub(crate) fn decode_row_at(&self, level: Level, index: usize, out: &mut [f32]) {
        match self.format.decoder_at() {
            Some(decode) => {
                let (values, scales) = self.row(index);
                assert_eq!(out.len(), self.cols, "numbers of a row");
                decode(level, values, scales, out);
            }
            None => self.decode_row(index, out),
        }
    }

    /// The bytes of row `index`: its values and its row of scales.
    ///
    /// # Panics
    /// When the row does not exist.
    pub fn row(&self, index: usize) -> (&'a [u8], &'a [u8]) {
        assert!(index < self.rows, "row {index} of {}", self.rows);
        let scales = self.rows * self.row_bytes + index / self.format.scale_rows() * self.scale_bytes;
        (&self.bytes[index * self.row_bytes..][..self.row_bytes], &self.bytes[scales..][..self.scale_bytes])
    }

    /// The bytes of some rows, where each has its own row of scales: their values and their scales.
    pub(crate) fn rows_of(&self, rows: std::ops::Range<usize>) -> (&'a [u8], &'a [u8]) {
        assert!(rows.start <= rows.end && rows.end <= self.rows && self.format.scale_rows() == 1, "rows {rows:?} of {}", self.rows);
        let of = |width: usize| rows.start * width..rows.end * width;
        (&self.bytes[of(self.row_bytes)], &self.bytes[self.rows * self.row_bytes..][of(self.scale_bytes)])
    }

    /// All rows, decoded, one after the other.
    pub fn decode(&self) -> Vec<f32> {
        let mut out = vec![0.0; self.rows * self.cols];
        if self.cols > 0 {
            out.chunks_exact_mut(self.cols).enumerate().for_each(|(index, row)| self.decode_row(index, row));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_takes_exactly_its_bytes() {
        let bytes = [0u8; 24];
        for (format, cols) in [(Format::F32, 3), (Format::F16, 6), (Format::BF16, 6)] {
            assert!(WeightView::new(format, 2, cols, &bytes).is_some());
            assert!(WeightView::new(format, 2, cols, &bytes[..23]).is_none());
            assert!(WeightView::new(format, usize::MAX, cols, &bytes).is_none());
            assert!(WeightView::new(format, 1, usize::MAX, &bytes).is_none());
        }
    }
}
