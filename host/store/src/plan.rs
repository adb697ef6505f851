//! A description held against what is stored: every read with its place in memory, all checked before a weight byte is read.

use std::collections::{HashMap, HashSet};

use coli_base::{Error, Result};
use coli_plugin_api::describe::{Description, ExpertGroup, ExpertView, Residency, View, Weight};
use coli_plugin_api::program::{GroupId, WeightId};
use coli_shaders::formats::Format;

use crate::checkpoint::Checkpoint;
use crate::memory::ALIGN;
use crate::packed::Asked;
use crate::spans::{self, Span};
use crate::view::{self, Blocks, Selection};

/// What [`crate::load`] will do.
#[derive(Debug)]
pub struct Plan<'a> {
    pub(crate) checkpoint: &'a Checkpoint,
    /// In the order of the files.
    pub(crate) reads: Vec<Read>,
    pub(crate) layout: Layout,
    bytes: u64,
}

/// Where each matrix lies in memory.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// The description's weights, by id, where they are wanted.
    pub(crate) weights: Vec<Option<Matrix>>,
    /// Its groups, by id.
    pub(crate) groups: Vec<Group>,
}

/// A group's matrices: gate, up, down of each expert, expert by expert, layer by layer.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) count: u32,
    pub(crate) matrices: Vec<Matrix>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix {
    pub(crate) format: Format,
    pub(crate) rows: u32,
    pub(crate) cols: u32,
    /// From the start of the memory, a multiple of [`ALIGN`].
    pub(crate) at: u64,
    pub(crate) bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) span: Span,
    pub(crate) at: u64,
}

impl<'a> Plan<'a> {
    /// Checks names, shapes, views and formats of everything that the description names.
    pub fn new(checkpoint: &'a Checkpoint, description: &Description) -> Result<Self> {
        Self::of(checkpoint, description, |_| true, |_| true)
    }

    /// The same for some of its weights and groups only.
    pub fn of(
        checkpoint: &'a Checkpoint,
        description: &Description,
        weight: impl Fn(WeightId) -> bool,
        group: impl Fn(GroupId) -> bool,
    ) -> Result<Self> {
        let mut planner = Planner { checkpoint, reads: Vec::new(), placed: HashMap::new(), bytes: 0 };
        let mut layout = Layout::default();
        for (id, named) in (0..).zip(&description.weights) {
            let wanted = weight(WeightId(id)).then(|| planner.weight(named).map_err(|error| error.within(&named.role)));
            layout.weights.push(wanted.transpose()?);
        }
        for (id, named) in (0..).zip(&description.groups) {
            let wanted = group(GroupId(id)).then(|| planner.group(named).map_err(|error| error.within(&named.role)));
            layout.groups.push(wanted.transpose()?.unwrap_or(Group { count: named.count, matrices: vec![] }));
        }
        let Planner { mut reads, bytes, .. } = planner;
        reads.sort_unstable_by_key(|read| {
            let place = read.span.place(checkpoint);
            (place.file, place.offset)
        });
        Ok(Self { checkpoint, reads, layout, bytes })
    }

    /// The memory that the weights will take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The formats of all matrices, once for each.
    pub fn formats(&self) -> impl Iterator<Item = Format> {
        let groups = self.layout.groups.iter().flat_map(|group| &group.matrices);
        self.layout.weights.iter().flatten().chain(groups).map(|matrix| matrix.format)
    }

    /// A line for the log where tensors are stored that the description does not use: a sign of a wrong configuration, or of parts of the
    /// model that the plugin does not serve.
    pub fn unused_note(&self) -> Option<String> {
        let used: HashSet<usize> = self.reads.iter().map(|read| read.span.tensor).collect();
        let mut unused = self.checkpoint.tensors().iter().enumerate().filter(|(index, _)| !used.contains(index)).map(|(_, tensor)| tensor);
        let first = unused.next()?;
        Some(match unused.count() {
            0 => format!("stored tensor `{}` is not used", first.name),
            more => format!("{} stored tensors are not used, `{}` among them", more + 1, first.name),
        })
    }
}

struct Planner<'a> {
    checkpoint: &'a Checkpoint,
    reads: Vec<Read>,
    /// What is in memory already, and where: tied weights are read once.
    placed: HashMap<Vec<Span>, u64>,
    bytes: u64,
}

impl Planner<'_> {
    fn weight(&mut self, weight: &Weight) -> Result<Matrix> {
        if weight.table == Some(Residency::Disk) {
            return Err(Error::refused("tables read from disk are not implemented"));
        }
        let asked = match weight.shape[..] {
            [len] => Some(asked(1, len)),
            [rows, cols] => Some(asked(rows, cols)),
            _ => None,
        };
        let selection = view::resolve(self.checkpoint, &weight.view, asked)?;
        match weight.shape[..] {
            [len] => self.matrix(selection, &weight.shape, (1, len), &weight.view),
            [rows, cols] => self.matrix(selection, &weight.shape, (rows, cols), &weight.view),
            _ => Err(Error::refused(format!("the plugin gives it {} dimensions, a weight has 1 or 2", weight.shape.len()))),
        }
    }

    fn group(&mut self, group: &ExpertGroup) -> Result<Group> {
        let (inward, outward) = ((group.hidden, group.width), (group.width, group.hidden));
        let mut matrices = Vec::new();
        for (index, layer) in group.layers.iter().enumerate() {
            let mut views = Vec::new();
            for (what, view, shape) in [("gate", &layer.gate, inward), ("up", &layer.up, inward), ("down", &layer.down, outward)] {
                let view = Experts::open(self.checkpoint, view, group.count, shape);
                views.push((what, view.map_err(|error| error.within(format_args!("layer {index} {what}")))?));
            }
            for expert in 0..group.count {
                for (what, view) in &views {
                    let matrix = self.expert(view, expert);
                    matrices.push(matrix.map_err(|error| error.within(format_args!("layer {index} {what} of expert {expert}")))?);
                }
            }
        }
        Ok(Group { count: group.count, matrices })
    }

    fn expert(&mut self, experts: &Experts<'_>, expert: u32) -> Result<Matrix> {
        let (rows, cols) = experts.shape;
        let (selection, view) = match &experts.stored {
            Stored::Each(pattern) => {
                let view = View::tensor(pattern.replace(HOLE, &expert.to_string()));
                (view::resolve(self.checkpoint, &view, Some(asked(rows, cols)))?, view)
            }
            Stored::Fused { all, stride, name, start } => {
                // Below the tensor's number of rows, since `expert` is below its number of experts.
                let first = u64::from(expert) * stride + u64::from(*start);
                (view::blocks(all, Blocks { start: first, rows: rows.into(), count: 1, step: rows.into() })?, View::tensor(*name))
            }
        };
        self.matrix(selection, &[rows, cols], (rows, cols), &view)
    }

    /// Gives a selection its place, if it has the shape that the plugin expects.
    fn matrix(&mut self, selection: Selection, expected: &[u32], (rows, cols): (u32, u32), view: &View) -> Result<Matrix> {
        let without_ones = |dims: &[u64]| dims.iter().copied().filter(|&dim| dim != 1).collect::<Vec<u64>>();
        let wide: Vec<u64> = expected.iter().map(|&dim| dim.into()).collect();
        if without_ones(&selection.dims) != without_ones(&wide) {
            return Err(Error::refused(format!("{} is {:?}, the plugin expects {expected:?}", view::name(view), selection.dims)));
        }
        let no_rows = |format: Format| {
            let (name, format) = (view::name(view), format.name());
            Error::refused(format!("{name} is stored in {format}, which has no rows of {cols}"))
        };
        let (format, spans) = spans::of(&selection).ok_or_else(|| no_rows(selection.format))?;
        let sum = |scales: bool| {
            let spans = spans.iter().filter(|span| span.scales == scales);
            spans.map(Span::total).try_fold(0u64, |sum, bytes| sum.checked_add(bytes?)).ok_or_else(too_large)
        };
        let (values, scales) = (sum(false)?, sum(true)?);
        // Values and scales each, since together they may be as many bytes as those of other rows.
        let fits = || {
            let rows = rows as usize;
            let all = format.matrix_bytes(rows, cols as usize)? as u64;
            Some(values == format.row_bytes(cols as usize)?.checked_mul(rows)? as u64 && values.checked_add(scales)? == all)
        };
        if fits() != Some(true) {
            return Err(no_rows(format));
        }
        let bytes = values + scales;
        let at = self.place(spans, bytes)?;
        Ok(Matrix { format, rows, cols, at, bytes })
    }

    fn place(&mut self, spans: Vec<Span>, bytes: u64) -> Result<u64> {
        if let Some(&at) = self.placed.get(&spans) {
            return Ok(at);
        }
        let at = self.bytes.checked_next_multiple_of(ALIGN as u64).ok_or_else(too_large)?;
        self.bytes = at.checked_add(bytes).ok_or_else(too_large)?;
        let mut next = at;
        for &span in &spans {
            self.reads.push(Read { span, at: next });
            next += span.bytes * span.times;
        }
        self.placed.insert(spans, at);
        Ok(at)
    }
}

fn asked(rows: u32, cols: u32) -> Asked {
    Asked { rows: Some(rows.into()), cols: cols.into() }
}

fn too_large() -> Error {
    Error::refused("more bytes than any memory has")
}

/// What stands for an expert's number in a tensor's name.
pub(crate) const HOLE: &str = "{expert}";

/// One matrix of every expert of a layer.
struct Experts<'a> {
    stored: Stored<'a>,
    shape: (u32, u32),
}

enum Stored<'a> {
    Each(&'a str),
    /// A tensor `[count, stride, in]`, seen as the matrix `[count * stride, in]`.
    Fused {
        all: Selection,
        stride: u64,
        name: &'a str,
        start: u32,
    },
}

impl<'a> Experts<'a> {
    fn open(checkpoint: &Checkpoint, view: &'a ExpertView, count: u32, shape: (u32, u32)) -> Result<Self> {
        let stored = match view {
            ExpertView::PerExpert(pattern) if pattern.contains(HOLE) => Stored::Each(pattern),
            ExpertView::PerExpert(pattern) => return Err(Error::refused(format!("`{pattern}` lacks `{HOLE}`: all experts would be one"))),
            ExpertView::Fused { tensor, start } => fused(checkpoint, tensor, *start, count, shape)?,
        };
        Ok(Self { stored, shape })
    }
}

fn fused<'a>(checkpoint: &Checkpoint, name: &'a str, start: u32, count: u32, (rows, cols): (u32, u32)) -> Result<Stored<'a>> {
    let all = view::whole(checkpoint, name, Some(Asked { rows: None, cols: cols.into() }))?;
    let needed = u64::from(start) + u64::from(rows);
    match all.dims[..] {
        [experts, stride, width] if experts == u64::from(count) && stride >= needed && width == u64::from(cols) => {
            Ok(Stored::Fused { all: all.flatten(), stride, name, start })
        }
        _ => Err(Error::refused(format!("tensor `{name}` is {:?}, the plugin expects [{count}, {needed} or more, {cols}]", all.dims))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open;
    use crate::testing::{Stored, describe, experts, model};
    use safetensors::Dtype;

    fn rows(of: View, start: u32, count: u32, step: u32) -> View {
        View::Rows { of: Box::new(of), start, count, step }
    }

    /// Why a weight of this shape and view is refused.
    fn refusal(shape: &[u32], view: View) -> String {
        let dir = model(&[
            Stored::f32("m", &[4, 3]),
            Stored::f32("v", &[4]),
            Stored::bf16("h", &[4, 3]),
            Stored::raw("q", Dtype::I8, &[4, 3], vec![0; 12]),
            Stored::f32("none", &[0, 3]),
        ]);
        let checkpoint = open(dir.path()).unwrap();
        let error = Plan::new(&checkpoint, &describe(shape, view)).unwrap_err();
        assert_eq!(error.kind, coli_base::Kind::Refused);
        assert!(error.text.starts_with("w: "), "{error}");
        error.text
    }

    #[test]
    fn what_is_stored_and_not_used_is_named() {
        let note = |stored: &[Stored]| {
            let dir = model(stored);
            let checkpoint = open(dir.path()).unwrap();
            Plan::new(&checkpoint, &describe(&[4, 3], View::tensor("m"))).unwrap().unused_note()
        };
        let tensor = |name| Stored::f32(name, &[4, 3]);
        assert_eq!(note(&[tensor("m")]), None);
        assert_eq!(note(&[tensor("m"), tensor("x")]).unwrap(), "stored tensor `x` is not used");
        assert_eq!(note(&[tensor("m"), tensor("x"), tensor("y")]).unwrap(), "2 stored tensors are not used, `x` among them");
    }

    #[test]
    fn wrong_weights_are_refused_by_name() {
        let is = |shape: &[u32], view: View, says: &str| assert_eq!(refusal(shape, view), format!("w: {says}"));
        is(&[3, 4], View::tensor("m"), "tensor `m` is [4, 3], the plugin expects [3, 4]");
        is(&[12], View::tensor("m"), "tensor `m` is [4, 3], the plugin expects [12]");
        is(&[4, 4], View::tensor("v"), "tensor `v` is [4], the plugin expects [4, 4]");
        is(&[4, 3], View::tensor("x"), "tensor `x` is not stored");
        is(&[4, 3], View::tensor("q"), "tensor `q` is stored as i8, which coli does not read; use bf16, f16, f32 or a GGUF file");
        is(&[0, 3], View::tensor("none"), "tensor `none` is empty");
        is(&[2, 3], rows(View::tensor("m"), 0, 1, 1), "rows of tensor `m` is [1, 3], the plugin expects [2, 3]");
    }

    #[test]
    fn views_beyond_what_is_stored_are_refused() {
        for (start, count, step) in [(0, 5, 1), (4, 1, 1), (1, 2, 3), (u32::MAX, u32::MAX, u32::MAX)] {
            assert!(refusal(&[2, 3], rows(View::tensor("m"), start, count, step)).contains("beyond the 4 rows"));
        }
        for (start, height, count, step) in [(0, 2, 3, 2), (3, 2, 1, 1), (0, u32::MAX, u32::MAX, u32::MAX)] {
            let text = refusal(&[2, 3], View::tensor("m").blocks(start, height, count, step));
            assert!(text.starts_with("w: tensor `m`: ") && text.contains("beyond the 4 rows"), "{text}");
        }
        assert!(refusal(&[2, 3], View::tensor("m").blocks(0, 0, 1, 1)).contains("selects nothing"));
        assert!(refusal(&[11], View::tensor("m").flat()).contains("the numbers of tensor `m` is [12]"));
        assert!(refusal(&[2, 3], rows(View::tensor("m"), 0, 0, 1)).contains("selects nothing"));
        assert!(refusal(&[2, 3], rows(View::tensor("m"), 0, 2, 0)).contains("selects nothing"));
        assert!(refusal(&[8, 3], View::Concat(vec![View::tensor("m"), View::tensor("h")])).contains("tensor `h`: is bf16"));
        assert!(refusal(&[8, 3], View::Concat(vec![View::tensor("m"), View::tensor("v")])).contains("tensor `v`: is [4]"));
        assert!(refusal(&[8, 3], View::Concat(vec![])).contains("no views"));
    }

    #[test]
    fn what_is_left_out_is_refused_by_name() {
        let dir = model(&[Stored::f32("m", &[4, 3])]);
        let checkpoint = open(dir.path()).unwrap();
        let mut description = describe(&[4, 3], View::tensor("m"));
        description.weights[0].table = Some(Residency::Disk);
        assert!(Plan::new(&checkpoint, &description).unwrap_err().text.contains("from disk are not implemented"));
        description.weights[0].table = None;
        description.weights[0].shape = vec![2, 2, 3];
        assert!(Plan::new(&checkpoint, &description).unwrap_err().text.contains("3 dimensions"));
    }

    #[test]
    fn wrong_experts_are_refused_by_name() {
        let each = ["e.0", "e.1", "d.0"].map(|name| Stored::f32(name, if name == "e.0" { &[2, 3] } else { &[3, 2] }));
        let dir = model(&each.into_iter().chain([Stored::f32("all", &[2, 4, 3])]).collect::<Vec<_>>());
        let checkpoint = open(dir.path()).unwrap();
        let refusal = |gate: ExpertView, count: u32| {
            let down = ExpertView::PerExpert("d.{expert}".into());
            let error = Plan::new(&checkpoint, &experts(count, 3, 2, gate.clone(), gate, down)).unwrap_err();
            assert!(error.text.starts_with("experts: layer 0 gate"), "{error}");
            error.text
        };
        let fused = |start: u32| ExpertView::Fused { tensor: "all".into(), start };
        assert!(
            refusal(ExpertView::PerExpert("e.{expert}".into()), 2)
                .contains("of expert 1: tensor `e.1` is [3, 2], the plugin expects [2, 3]")
        );
        assert!(refusal(ExpertView::PerExpert("x.{expert}".into()), u32::MAX).contains("of expert 0: tensor `x.0` is not stored"));
        assert!(refusal(ExpertView::PerExpert("e.0".into()), 2).contains("lacks `{expert}`"));
        assert!(refusal(fused(0), 3).contains("tensor `all` is [2, 4, 3], the plugin expects [3, 2 or more, 3]"));
        assert!(refusal(fused(3), 2).contains("the plugin expects [2, 5 or more, 3]"));
    }

    #[test]
    fn a_view_used_twice_takes_memory_once() {
        let dir = model(&[Stored::f32("m", &[4, 3])]);
        let checkpoint = open(dir.path()).unwrap();
        let mut description = describe(&[4, 3], View::tensor("m"));
        description.matrix("head", 4, 3, View::tensor("m"));
        let plan = Plan::new(&checkpoint, &description).unwrap();
        assert_eq!((plan.bytes(), plan.reads.len()), (48, 1));
    }
}
