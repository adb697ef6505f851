//! Which formats a tensor's bytes fit. Counts of bytes leave few; where more than one is left, they must decode alike.

use coli_shaders::formats::{Format, infer};

/// Bytes of a tensor's values and of its scales.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) values: u64,
    pub(super) scales: u64,
}

/// What a model expects a tensor to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// Its rows, where all of them are asked for.
    pub(crate) rows: Option<u64>,
    /// Numbers of a row.
    pub(crate) cols: u64,
}

/// What u8 and i8 values may be where nothing states it.
pub(super) fn container() -> Vec<Format> {
    vec![
        Format::INT8_ROW,
        Format::INT8_G64,
        Format::INT4_ROW,
        Format::INT4_G64,
        Format::INT4_ROW_TC,
        Format::INT4_G64_TC,
        Format::INT4_G64_PLANAR,
        Format::INT3_G64,
        Format::MXFP4,
        Format::FP8_128X128_F32,
        Format::FP8_128X128_UE8M0,
        Format::FP8_32X32_UE8M0,
    ]
}

/// All formats of FP8, or those of one block of rows and columns.
pub(super) fn fp8(block: Option<[u64; 2]>) -> Vec<Format> {
    let begins = block.map_or("fp8-".to_owned(), |[rows, cols]| format!("fp8-{rows}x{cols}-"));
    let mut formats: Vec<Format> = Format::ALL.iter().copied().filter(|format| format.name().starts_with(&begins)).collect();
    // Blocks of one row come last: where one of the others fits as well, it is what was meant.
    formats.sort_by_key(|format| format.name().starts_with("fp8-1x"));
    formats
}

pub(super) fn is_fp8(format: Format) -> bool {
    family(format) == "fp8"
}

/// What formats have in common that differ only in how many numbers share a scale.
fn family(format: Format) -> &'static str {
    format.name().split('-').next().unwrap_or_default()
}

/// Whether pairs of four-bit numbers are in two's complement where `twos`, offset where not. Other formats are of either convention.
pub(super) fn is_of_convention(format: Format, twos: bool) -> bool {
    let offset = [Format::INT4_ROW, Format::INT4_G64, Format::INT4_G64_PLANAR].contains(&format);
    let complement = [Format::INT4_ROW_TC, Format::INT4_G64_TC].contains(&format);
    (!offset && !complement) || complement == twos
}

/// Bytes of a scale. No format has a group shorter than 32 numbers.
pub(super) fn scale_width(format: Format) -> Option<usize> {
    format.scale_bytes(32)
}

/// Those of `candidates` that store numbers of these dimensions in exactly so many bytes. The matrices of a tensor of more than two
/// dimensions are stored one after the other, each with whole rows of scales.
pub(super) fn fitting(candidates: &[Format], dims: &[u64], sizes: Sizes) -> Vec<Format> {
    let found = of_matrices(dims, sizes).unwrap_or_default();
    candidates.iter().copied().filter(|format| found.contains(format)).collect()
}

fn of_matrices(dims: &[u64], Sizes { values, scales }: Sizes) -> Option<Vec<Format>> {
    let (outer, rows, cols) = matrices(dims)?;
    if values == 0 || !values.is_multiple_of(outer) || !scales.is_multiple_of(outer) {
        return None;
    }
    let [rows, cols, values, scales] = [rows, cols, values / outer, scales / outer].map(usize::try_from);
    Some(infer(rows.ok()?, cols.ok()?, values.ok()?, scales.ok()?))
}

/// How many matrices a tensor has, and the rows and columns of each; `None` where one of these is 0 or too large.
pub(super) fn matrices(dims: &[u64]) -> Option<(u64, u64, u64)> {
    let (outer, rows, cols) = match dims {
        [] => (&[][..], 1, 1),
        [cols] => (&[][..], 1, *cols),
        [outer @ .., rows, cols] => (outer, *rows, *cols),
    };
    let outer = outer.iter().try_fold(1u64, |product, dim| product.checked_mul(*dim))?;
    (outer > 0 && rows > 0 && cols > 0).then_some((outer, rows, cols))
}

/// Whether the scales' shape is a row for every block of rows and a number for every block of columns. FP8 states it; counts alone would
/// take a column of scales for a row of them.
pub(super) fn is_grid(format: Format, dims: &[u64], scales: &[u64]) -> bool {
    let Some((_, rows, cols)) = matrices(dims) else { return false };
    let groups = usize::try_from(cols).ok().and_then(|cols| format.scale_bytes(cols)).zip(scale_width(format));
    let Some(groups) = groups.and_then(|(bytes, width)| bytes.checked_div(width)) else { return false };
    let outer = dims.iter().take(dims.len().saturating_sub(2)).copied();
    let grid: Vec<u64> = outer.chain([rows.div_ceil(format.scale_rows() as u64), groups as u64]).collect();
    // A scale a row may be stored without the dimension of 1, and a single one without any.
    scales == grid || (groups == 1 && scales == &grid[..grid.len() - 1]) || (grid.iter().all(|dim| *dim == 1) && scales.len() <= 1)
}

/// The one of these that fit which is meant, or all of them where they decode differently.
///
/// Formats of a family that fit the same bytes decode alike: then a row is no longer than a group of the one, or a tensor no larger than a
/// block. The planar order and FP8 in untyped bytes are meant only where nothing else fits: nobody writes the former without saying so, and
/// the source engine reads eight-bit numbers where either fits.
pub(super) fn choose(fitting: &[Format]) -> Result<Format, Vec<Format>> {
    let rare = |format: &Format| *format == Format::INT4_G64_PLANAR || is_fp8(*format);
    let usual: Vec<Format> = fitting.iter().copied().filter(|format| !rare(format)).collect();
    let left = if usual.is_empty() { fitting.to_vec() } else { usual };
    match left.first() {
        Some(first) if left.iter().all(|format| family(*format) == family(*first)) => Ok(*first),
        _ => Err(left),
    }
}

/// Format and dimensions of a tensor whose rows have `cols` numbers: as many rows as its shape has, else as the model says, else as the
/// bytes say.
pub(super) fn of_rows(
    candidates: &[Format],
    stored: &[u64],
    Asked { rows, cols }: Asked,
    sizes: Sizes,
) -> Result<(Format, Vec<u64>), Vec<Format>> {
    let outer = &stored[..stored.len().saturating_sub(1)];
    let shaped = (!outer.is_empty()).then(|| outer.iter().copied().chain([cols]).collect::<Vec<u64>>());
    for dims in shaped.into_iter().chain(rows.map(|rows| vec![rows, cols])) {
        let fitting = fitting(candidates, &dims, sizes);
        if !fitting.is_empty() {
            return choose(&fitting).map(|format| (format, dims));
        }
    }
    if rows.is_some() {
        return Err(vec![]);
    }
    let dims = |format: Format| {
        let row = format.row_bytes(usize::try_from(cols).ok()?)? as u64;
        (row > 0 && sizes.values.is_multiple_of(row)).then(|| vec![sizes.values / row, cols])
    };
    let fits = |format: &Format| dims(*format).is_some_and(|dims| !fitting(&[*format], &dims, sizes).is_empty());
    let fitting: Vec<Format> = candidates.iter().copied().filter(fits).collect();
    let format = choose(&fitting)?;
    dims(format).map(|dims| (format, dims)).ok_or(fitting)
}

/// Format and dimensions where the stored shape leaves one choice. A row of an odd length, or one that is padded, is taken for the longest
/// that has its bytes: this is for showing, and a model's own word counts more.
pub(super) fn guess(candidates: &[Format], stored: &[u64], sizes: Sizes) -> Option<(Format, Vec<u64>)> {
    let [outer @ .., row] = stored else { return None };
    if outer.is_empty() {
        return None;
    }
    let mut found: Vec<(Format, Vec<u64>)> = Vec::new();
    for format in candidates {
        let Some(unit) = format.row_bytes(UNIT).map(|bytes| bytes as u64) else { continue };
        let Some(cols) = row.checked_mul(UNIT as u64).filter(|bytes| bytes.is_multiple_of(unit)).map(|bytes| bytes / unit) else {
            continue;
        };
        let dims: Vec<u64> = outer.iter().copied().chain([cols]).collect();
        if !fitting(&[*format], &dims, sizes).is_empty() {
            found.push((*format, dims));
        }
    }
    let formats: Vec<Format> = found.iter().map(|(format, _)| *format).collect();
    let format = choose(&formats).ok()?;
    found.into_iter().find(|(found, _)| *found == format)
}

/// A row that every format can store.
const UNIT: usize = 256;
