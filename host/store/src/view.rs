//! What a view selects: a shape, a format and the stored values, in order. Nothing is read here, and scales follow from the values
//! ([`crate::spans`]).

use coli_base::{Error, Result};
use coli_plugin_api::describe::View;
use coli_shaders::formats::Format;

use crate::checkpoint::Checkpoint;
use crate::packed::Asked;

/// A run of a stored tensor's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// Position in the checkpoint's tensors.
    pub(crate) tensor: usize,
    /// From the start of its values.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// Rows of each of the tensor's matrices, which begin new rows of scales.
    pub(crate) matrix_rows: u64,
}

/// A view, resolved. `runs` hold exactly the rows of `dims`; no dimension is 0. Where the format has scales apart, a run is whole rows of
/// the last dimension.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pub(crate) format: Format,
    pub(crate) dims: Vec<u64>,
    pub(crate) runs: Vec<Run>,
    /// `None` where a row of `dims` is a part of a block, so that none can be cut out.
    row_bytes: Option<u64>,
}

/// Whether scales are stored apart from values.
pub(crate) fn has_scales(format: Format) -> bool {
    format.scale_bytes(256) != Some(0)
}

impl Selection {
    /// `[outer, rows, in]` as the matrix `[outer * rows, in]`: the same bytes.
    pub(crate) fn flatten(mut self) -> Self {
        if let [outer, rows, width] = self.dims[..] {
            self.row_bytes = self.row_bytes.map(|bytes| bytes / rows);
            // No dimension is 0, and the rows of all of them have a number.
            self.dims = vec![outer * rows, width];
        }
        self
    }

    /// All numbers as one vector: the same bytes, if no scales depend on where rows begin.
    fn flat(mut self) -> Result<Self> {
        if has_scales(self.format) {
            return Err(no_single_numbers(self.format));
        }
        let number = self.format.row_bytes(1);
        // Views that overlap may be more numbers than any tensor has: saturated, they have no plugin's shape.
        let numbers = self.dims.iter().fold(1u64, |product, dim| product.saturating_mul(*dim));
        self.row_bytes = number.map(|bytes| bytes as u64);
        self.dims = vec![numbers];
        Ok(self)
    }
}

/// Resolves a view against what is stored. `asked` is what the result should be: what is packed does not say how
/// long its rows are.
pub(crate) fn resolve(checkpoint: &Checkpoint, view: &View, asked: Option<Asked>) -> Result<Selection> {
    match view {
        View::Tensor(name) => whole(checkpoint, name, asked),
        View::Rows { of, start, count, step } => {
            let selection = resolve(checkpoint, of, a_part(asked))?;
            let chosen = Blocks { start: (*start).into(), rows: 1, count: (*count).into(), step: (*step).into() };
            blocks(&selection, chosen).map_err(|error| error.within(name(of)))
        }
        View::Blocks { of, start, rows, count, step } => {
            let selection = resolve(checkpoint, of, a_part(asked))?;
            let chosen = Blocks { start: (*start).into(), rows: (*rows).into(), count: (*count).into(), step: (*step).into() };
            blocks(&selection, chosen).map_err(|error| error.within(name(of)))
        }
        View::Flat(of) => resolve(checkpoint, of, None)?.flat().map_err(|error| error.within(name(of))),
        View::Stacked(of) => Ok(resolve(checkpoint, of, asked)?.flatten()),
        View::Concat(parts) => concat(checkpoint, parts, asked),
    }
}

/// The same of a tensor whose rows are more or fewer than those that are asked for.
fn a_part(asked: Option<Asked>) -> Option<Asked> {
    asked.map(|asked| Asked { rows: None, ..asked })
}

/// How messages name a view.
pub(crate) fn name(view: &View) -> String {
    match view {
        View::Tensor(name) => format!("tensor `{name}`"),
        View::Rows { of, .. } | View::Blocks { of, .. } | View::Stacked(of) => format!("rows of {}", name(of)),
        View::Flat(of) => format!("the numbers of {}", name(of)),
        View::Concat(parts) => match parts.first() {
            Some(first) => format!("{} joined with {} more", name(first), parts.len() - 1),
            None => "an empty concatenation".to_owned(),
        },
    }
}

/// A whole tensor of a served type. The dimensions of one that is not empty have a product, which its bytes are made of.
pub(crate) fn whole(checkpoint: &Checkpoint, name: &str, asked: Option<Asked>) -> Result<Selection> {
    let index = checkpoint.find(name).ok_or_else(|| Error::refused(format!("tensor `{name}` is not stored")))?;
    let tensor = &checkpoint.tensors()[index];
    if tensor.values.bytes == 0 && tensor.is_served() {
        return Err(Error::refused(format!("tensor `{name}` is empty")));
    }
    let (format, shape) = tensor.numbers(asked)?;
    let row_bytes = match shape[..] {
        // A row is a number, which in a format of blocks is no bytes of its own, and has no scale of its own.
        [] | [_] if has_scales(format) => None,
        [] | [_] => format.row_bytes(1).map(|bytes| bytes as u64),
        [rows, ..] => Some(tensor.values.bytes / rows),
    };
    let matrix_rows = match shape[..] {
        [] | [_] => 1,
        [.., rows, _] => rows,
    };
    let run = Run { tensor: index, offset: 0, bytes: tensor.values.bytes, matrix_rows };
    // A scalar has no dimension to take rows of; it is a vector of one number.
    let dims = if shape.is_empty() { vec![1] } else { shape };
    Ok(Selection { format, dims, runs: vec![run], row_bytes })
}

fn no_single_numbers(format: Format) -> Error {
    Error::refused(format!("a vector in {} has no single numbers to take", format.name()))
}

/// `count` blocks of `rows` rows, the first from `start`, each `step` rows after the one before.
#[derive(Clone, Copy)]
pub(crate) struct Blocks {
    pub(crate) start: u64,
    pub(crate) rows: u64,
    pub(crate) count: u64,
    pub(crate) step: u64,
}

pub(crate) fn blocks(of: &Selection, Blocks { start, rows, count, step }: Blocks) -> Result<Selection> {
    let what = || if rows == 1 { format!("{count} rows") } else { format!("{count} blocks of {rows} rows") };
    if count == 0 || step == 0 || rows == 0 {
        return Err(Error::refused(format!("a view of {} with step {step} selects nothing", what())));
    }
    let end = (count - 1).checked_mul(step).and_then(|reach| reach.checked_add(start)?.checked_add(rows));
    if end.is_none_or(|end| end > of.dims[0]) {
        return Err(Error::refused(format!("{} from {start} with step {step} reach beyond the {} rows", what(), of.dims[0])));
    }
    let row_bytes = of.row_bytes.ok_or_else(|| no_single_numbers(of.format))?;
    let mut runs = Vec::new();
    if step == rows {
        cut(&of.runs, start * row_bytes, count * rows * row_bytes, &mut runs);
    } else {
        (0..count).for_each(|block| cut(&of.runs, (start + block * step) * row_bytes, rows * row_bytes, &mut runs));
    }
    let mut dims = of.dims.clone();
    // Blocks that overlap may be more rows than there are.
    dims[0] = count.checked_mul(rows).filter(|rows| rows.checked_mul(row_bytes).is_some()).ok_or_else(too_many)?;
    Ok(Selection { format: of.format, dims, runs, row_bytes: of.row_bytes })
}

fn too_many() -> Error {
    Error::refused("too many rows")
}

/// Appends `bytes` bytes from `from` of what `runs` hold.
fn cut(runs: &[Run], mut from: u64, mut bytes: u64, out: &mut Vec<Run>) {
    for run in runs {
        if bytes == 0 {
            return;
        }
        if from >= run.bytes {
            from -= run.bytes;
            continue;
        }
        let taken = bytes.min(run.bytes - from);
        out.push(Run { offset: run.offset + from, bytes: taken, ..*run });
        bytes -= taken;
        from = 0;
    }
}

fn concat(checkpoint: &Checkpoint, parts: &[View], asked: Option<Asked>) -> Result<Selection> {
    let mut joined: Option<Selection> = None;
    for part in parts {
        let next = resolve(checkpoint, part, a_part(asked))?;
        joined = Some(match joined {
            None => next,
            Some(before) => append(before, next).map_err(|error| error.within(name(part)))?,
        });
    }
    joined.ok_or_else(|| Error::refused("a concatenation of no views"))
}

fn append(mut before: Selection, mut next: Selection) -> Result<Selection> {
    if before.format != next.format {
        let (first, second) = (before.format.name(), next.format.name());
        return Err(Error::refused(format!("is {second}, the parts before it are {first}: one matrix has one format")));
    }
    if before.dims[1..] != next.dims[1..] {
        return Err(Error::refused(format!("is {:?}, rows of the parts before it are {:?}", next.dims, &before.dims[1..])));
    }
    if has_scales(before.format) && before.row_bytes.is_none() {
        return Err(no_single_numbers(before.format));
    }
    let rows = before.dims[0].checked_add(next.dims[0]);
    // The bytes of all rows must have a number too: `rows` above counts with them.
    before.dims[0] = rows.filter(|rows| rows.checked_mul(before.row_bytes.unwrap_or(1)).is_some()).ok_or_else(too_many)?;
    before.runs.append(&mut next.runs);
    Ok(before)
}
