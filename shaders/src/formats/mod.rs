//! Weight formats: how stored bytes become numbers. A recording never names one; a format comes with the stored tensor.
//!
//! Every format stores a matrix row by row, so a row is found by arithmetic and decoded alone.

mod bf16;
mod f16;
mod f32;

/// A format of stored weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// IEEE 754 binary32, little-endian.
    F32,
    /// IEEE 754 binary16, little-endian.
    F16,
    /// The upper half of a binary32, little-endian.
    Bf16,
}

/// What a format's folder provides.
struct Entry {
    name: &'static str,
    row_bytes: fn(usize) -> Option<usize>,
    decode: fn(&[u8], &mut [f32]),
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::Bf16];

    fn entry(self) -> &'static Entry {
        match self {
            Self::F32 => &f32::ENTRY,
            Self::F16 => &f16::ENTRY,
            Self::Bf16 => &bf16::ENTRY,
        }
    }

    /// Its name, as `coli` prints it.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Bytes of a row of `cols` numbers; `None` where the format cannot store such a row, or the size overflows.
    pub fn row_bytes(self, cols: usize) -> Option<usize> {
        (self.entry().row_bytes)(cols)
    }

    /// Decodes one row.
    ///
    /// # Panics
    /// When `bytes` is not exactly `row_bytes(out.len())` long.
    pub fn decode_row(self, bytes: &[u8], out: &mut [f32]) {
        assert_eq!(Some(bytes.len()), self.row_bytes(out.len()), "bytes of a {} row of {}", self.name(), out.len());
        (self.entry().decode)(bytes, out);
    }
}

/// A matrix of stored weights: `rows` rows of `cols` numbers in one format. A vector is a matrix of one row.
#[derive(Debug, Clone, Copy)]
pub struct WeightView<'a> {
    format: Format,
    rows: usize,
    cols: usize,
    row_bytes: usize,
    bytes: &'a [u8],
}

impl<'a> WeightView<'a> {
    /// A view of `bytes`, or `None` where they are not exactly `rows` rows.
    pub fn new(format: Format, rows: usize, cols: usize, bytes: &'a [u8]) -> Option<Self> {
        let row_bytes = format.row_bytes(cols)?;
        (row_bytes.checked_mul(rows)? == bytes.len()).then_some(Self { format, rows, cols, row_bytes, bytes })
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

    /// Decodes row `index`.
    ///
    /// # Panics
    /// When the row does not exist or `out` is not one row long.
    pub fn decode_row(&self, index: usize, out: &mut [f32]) {
        assert!(index < self.rows, "row {index} of {}", self.rows);
        self.format.decode_row(&self.bytes[index * self.row_bytes..][..self.row_bytes], out);
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
        for (format, cols) in [(Format::F32, 3), (Format::F16, 6), (Format::Bf16, 6)] {
            assert!(WeightView::new(format, 2, cols, &bytes).is_some());
            assert!(WeightView::new(format, 2, cols, &bytes[..23]).is_none());
            assert!(WeightView::new(format, usize::MAX, cols, &bytes).is_none());
            assert!(WeightView::new(format, 1, usize::MAX, &bytes).is_none());
        }
    }
}
