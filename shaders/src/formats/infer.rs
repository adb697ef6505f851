//! Formats from sizes, for containers that state shapes and bytes but no format.

use super::Format;

/// All formats that store `rows` rows of `cols` numbers in so many bytes of values and of scales, in [`Format::ALL`]'s order.
///
/// More than one may fit: what a byte means cannot be told from how many there are.
pub fn infer(rows: usize, cols: usize, value_bytes: usize, scale_bytes: usize) -> Vec<Format> {
    let fits = |format: &Format| {
        let values = format.row_bytes(cols)?.checked_mul(rows)?;
        let scales = format.scale_bytes(cols)?.checked_mul(rows.div_ceil(format.scale_rows()))?;
        Some((values, scales) == (value_bytes, scale_bytes))
    };
    Format::ALL.iter().copied().filter(|format| fits(format) == Some(true)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of the formats that fit, in alphabetical order.
    fn names(rows: usize, cols: usize, values: usize, scales: usize) -> Vec<&'static str> {
        let mut names: Vec<_> = infer(rows, cols, values, scales).into_iter().map(Format::name).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn every_format_fits_its_own_sizes() {
        for format in Format::ALL {
            let (rows, cols) = (130, 256);
            let values = format.row_bytes(cols).unwrap() * rows;
            let scales = format.matrix_bytes(rows, cols).unwrap() - values;
            assert!(infer(rows, cols, values, scales).contains(format), "{format:?}");
            assert!(!infer(rows, cols, values + 1, scales).contains(format), "{format:?}");
            assert!(!infer(rows, cols, values, scales + 1).contains(format), "{format:?}");
        }
    }

    #[test]
    fn some_sizes_tell_the_format() {
        assert_eq!(names(6, 128, 6 * 48, 6 * 8), ["int3-g64"]);
        assert_eq!(names(200, 256, 200 * 256, 4), ["fp8-128x128-ue8m0"]);
        assert_eq!(names(6, 100, 6 * 64, 6 * 8), ["int4-g64-planar"]);
    }

    /// One byte means many things.
    #[test]
    fn some_sizes_are_ambiguous() {
        assert_eq!(names(6, 128, 6 * 64, 6 * 4), ["int4-row", "int4-row-tc", "mxfp4"]);
        assert_eq!(names(6, 192, 6 * 96, 6 * 12), ["int4-g64", "int4-g64-planar", "int4-g64-tc"]);
        assert_eq!(names(6, 100, 6 * 50, 6 * 8), ["int4-g64", "int4-g64-tc"]);
        assert_eq!(names(6, 200, 6 * 200, 6 * 4), ["fp8-1x128-bf16", "fp8-row-f32", "int8-row"]);
        assert_eq!(names(6, 5, 6 * 10, 0), ["bf16", "f16"]);
    }

    #[test]
    fn nothing_fits_absurd_sizes() {
        assert_eq!(names(6, 128, 7, 0), [""; 0]);
        assert_eq!(names(usize::MAX, 256, usize::MAX, 0), [""; 0]);
    }
}
