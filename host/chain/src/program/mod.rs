//! From a plugin's description and the bytes of its segments to a [`Program`].
//!
//! Everything is checked here, before anything runs, in this order: the description ([`description`]); for each segment its bytes, its
//! tables, single assignment, states and every op's own rules ([`segment`]); the ports between segments and the ones that the host
//! reads ([`link`]). An error names segment, op and field, and nothing is accepted in part. After that executors believe every shape.

mod description;
mod link;
mod scratch;
mod segment;

use std::collections::{HashMap, HashSet};

use coli_base::units::Bytes;
use coli_base::{Error, Result};
use coli_plugin_api::describe::{Description, SegmentName};
use coli_plugin_api::program::{Builtin, GroupId, StateId, Ty, WeightId, ports};
use coli_shaders::contract::{ExpertMatrix, Kernel, Prepare, WeightStore};

pub use scratch::Slot;

/// Ops by `name@version`: the library, and those that a plugin brings.
pub struct OpTable(HashMap<String, Prepare>);

impl OpTable {
    /// The ops that this host has.
    pub fn library() -> Self {
        Self(coli_shaders::ops::all().into_iter().map(|entry| (entry.id, Box::new(entry.prepare) as Prepare)).collect())
    }

    /// Adds an op. One that is there stays as it is, and `false` says so.
    #[must_use]
    pub fn add(&mut self, id: &str, prepare: Prepare) -> bool {
        let free = !self.has(id);
        if free {
            self.0.insert(id.into(), prepare);
        }
        free
    }

    /// Whether there is such an op.
    pub fn has(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    fn get(&self, id: &str) -> Option<&Prepare> {
        self.0.get(id)
    }
}

/// The rows that a value has one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rows {
    /// The rows of the step.
    Tokens,
    /// The rows whose outputs are wanted.
    Outs,
}

/// A port that comes from outside the program: from the host, or from the other side of a cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSpec {
    /// Its name.
    pub name: String,
    /// Its rows.
    pub rows: Rows,
    /// What its numbers are.
    pub ty: Ty,
    /// Numbers a row.
    pub width: u32,
}

/// Where an operand is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A scratch slot.
    Slot(usize),
    /// A row input, by its number in [`Program::inputs`].
    Input(usize),
}

/// An operand with its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlacedOperand {
    pub place: Place,
    /// Words of a row at that place.
    pub stride: usize,
    pub col0: usize,
    pub ncols: usize,
}

/// An op that is ready to run.
pub(crate) struct LinkedOp {
    pub id: String,
    pub kernel: Kernel,
    pub rows: Rows,
    pub ins: Vec<PlacedOperand>,
    /// Slot and width of each output.
    pub outs: Vec<(usize, usize)>,
    pub weights: Vec<WeightId>,
    pub states: Vec<StateId>,
    pub groups: Vec<GroupId>,
}

/// A port that can be read after its segment has run.
#[derive(Debug, Clone)]
pub(crate) struct LinkedPort {
    pub spec: PortSpec,
    pub slot: usize,
}

/// A port that a segment reads.
#[derive(Debug, Clone)]
pub(crate) struct ReadPort {
    pub port: LinkedPort,
    /// The segment that gives it, by its place in the program; `None` where it comes from outside.
    pub from: Option<usize>,
}

/// A segment that is ready to run.
pub(crate) struct LinkedSegment {
    pub name: SegmentName,
    pub ops: Vec<LinkedOp>,
    pub outputs: Vec<LinkedPort>,
    pub reads: Vec<ReadPort>,
    /// The row inputs that it reads, by their numbers in [`Program::inputs`].
    pub inputs: Vec<usize>,
    /// Whether it works on wanted rows, and so runs in slices of them.
    pub sliced: bool,
}

/// A row input that the executor fills for every step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowInput {
    pub source: RowSource,
    pub rows: Rows,
    pub width: usize,
}

/// Who gives a row input's numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowSource {
    /// The step.
    Builtin(Builtin),
    /// The plugin's `ids` function, asked under this name with a window of so many tokens.
    Ids { name: String, window: usize },
}

/// A validated program: segments in order, with every value in a slot of scratch memory.
pub struct Program {
    pub(crate) segments: Vec<LinkedSegment>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) inputs: Vec<RowInput>,
    pub(crate) given: Vec<LinkedPort>,
    description: Description,
}

impl Program {
    /// Checks and links the segments of a description. `given` are ports that come from outside; without any, the first segment has none.
    pub fn build(description: &Description, recordings: &[(SegmentName, Vec<u8>)], ops: &OpTable, given: &[PortSpec]) -> Result<Self> {
        Self::build_with(description, recordings, ops, given, scratch::assign)
    }

    fn build_with(
        description: &Description,
        recordings: &[(SegmentName, Vec<u8>)],
        ops: &OpTable,
        given: &[PortSpec],
        assign: scratch::Assign,
    ) -> Result<Self> {
        Self::check_description(description)?;
        let names: Vec<SegmentName> = recordings.iter().map(|(name, _)| *name).collect();
        if names != description.segments {
            return Err(Error::refused("the recorded segments are not those of the description"));
        }
        let mut checked = Vec::with_capacity(recordings.len());
        let mut stored = HashSet::new();
        for (name, bytes) in recordings {
            let segment = segment::check(*name, bytes, description, ops, &mut stored);
            checked.push(segment.map_err(|fault| Error::refused(format!("{name}: {fault}")))?);
        }
        description::all_advanced(description, &stored).map_err(|fault| Error::refused(format!("the plugin's description: {fault}")))?;
        link::link(description.clone(), checked, given, assign).map_err(Error::refused)
    }

    /// The rules of a description that hold whatever its segments record: to be held before a plugin is asked for all of them.
    pub fn check_description(description: &Description) -> Result<()> {
        description::check(description).map_err(|fault| Error::refused(format!("the plugin's description: {fault}")))
    }

    /// The same with a slot for each value.
    #[cfg(test)]
    pub(crate) fn build_apart(description: &Description, recordings: &[(SegmentName, Vec<u8>)]) -> Result<Self> {
        Self::build_with(description, recordings, &OpTable::library(), &[], scratch::assign_apart)
    }

    /// What the plugin described.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Checks that the program is a language model: its head gives logits over the vocabulary and a sampled id.
    pub fn check_language_model(&self) -> Result<()> {
        let head = self.segments.iter().rfind(|segment| !matches!(segment.name, SegmentName::Draft(_)));
        let outputs = head.map_or(&[][..], |segment| &segment.outputs[..]);
        let vocab = self.description.vocab;
        for (name, ty, width) in [(ports::LOGITS, Ty::F32, vocab), (ports::SAMPLED, Ty::I32, 1)] {
            let want = PortSpec { name: name.into(), rows: Rows::Outs, ty, width };
            if !outputs.iter().any(|port| port.spec == want) {
                return Err(Error::refused(format!("the last segment has no port `{name}` of {width} {ty:?} for each wanted row")));
            }
        }
        Ok(())
    }

    /// Scratch memory for so many rows of a step and of wanted rows. What is too much for a number is the largest one, which no memory
    /// holds.
    pub fn scratch_bytes(&self, tokens_max: usize, outs_max: usize) -> Bytes {
        let widths = self.slots.iter().map(|slot| (slot.rows, slot.width));
        let widths = widths.chain(self.inputs.iter().map(|input| (input.rows, input.width)));
        let bytes = |(rows, width): (Rows, usize)| {
            let rows = if rows == Rows::Tokens { tokens_max } else { outs_max };
            (width as u64).saturating_mul(rows as u64).saturating_mul(4)
        };
        Bytes(widths.map(bytes).fold(0, u64::saturating_add))
    }

    /// Memory of fast mode's experts for so many rows of a step: of each pair of a row and a rank its gated middle and its result as f32,
    /// and what is multiplied as int8 with its scales and sums (a half more). One layer runs at a time.
    pub fn fast_bytes(&self, tokens_max: usize) -> Bytes {
        let experts = self.segments.iter().flat_map(|segment| &segment.ops).filter_map(|op| {
            let group = self.description.groups.get(op.groups.first()?.0 as usize)?;
            let pairs = (tokens_max as u64).saturating_mul(op.ins.get(1)?.ncols as u64);
            let numbers = u64::from(group.hidden).saturating_add(group.width.into());
            Some(pairs.saturating_mul(numbers).saturating_mul(6))
        });
        Bytes(experts.max().unwrap_or(0))
    }

    /// Bytes of the weights and experts that each segment's ops use. What several segments use counts for the first one.
    pub fn segment_bytes(&self, store: &dyn WeightStore) -> Vec<u64> {
        let mut weights = HashSet::new();
        let of_segment = |segment: &LinkedSegment| {
            let mut bytes = 0u64;
            for op in &segment.ops {
                let new = op.weights.iter().filter(|id| weights.insert(**id));
                bytes += new.filter_map(|id| store.weight(*id)).map(|view| view.bytes() as u64).sum::<u64>();
                bytes += op.groups.iter().map(|id| self.layer_bytes(*id, store)).sum::<u64>();
            }
            bytes
        };
        self.segments.iter().map(of_segment).collect()
    }

    /// Bytes of a group's experts in one of its layers, on average.
    fn layer_bytes(&self, id: GroupId, store: &dyn WeightStore) -> u64 {
        let Some(group) = self.description.groups.get(id.0 as usize) else { return 0 };
        let matrices = [ExpertMatrix::Gate, ExpertMatrix::Up, ExpertMatrix::Down];
        let layers = group.layers.len() as u32;
        // Experts of a layer are alike.
        let views = (0..layers).flat_map(|layer| matrices.map(|which| store.expert(id, layer, 0, which)));
        let bytes: u64 = views.flatten().map(|view| view.bytes() as u64).sum();
        bytes.saturating_mul(group.count.into()) / u64::from(layers.max(1))
    }

    /// The program's segments, in order.
    pub fn segments(&self) -> impl Iterator<Item = SegmentName> {
        self.segments.iter().map(|segment| segment.name)
    }

    /// The weights and expert groups that some op uses: what is not among them need not be read.
    pub fn uses(&self) -> (HashSet<WeightId>, HashSet<GroupId>) {
        let ops = || self.segments.iter().flat_map(|segment| &segment.ops);
        (ops().flat_map(|op| &op.weights).copied().collect(), ops().flat_map(|op| &op.groups).copied().collect())
    }

    /// Ops of each segment, for `coli plugins dump` and tests.
    pub fn ops(&self) -> impl Iterator<Item = (SegmentName, &str)> {
        self.segments.iter().flat_map(|segment| segment.ops.iter().map(|op| (segment.name, op.id.as_str())))
    }
}

#[cfg(test)]
mod tests;
