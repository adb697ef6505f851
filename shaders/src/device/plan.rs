//! What an op asks of a device: dispatches, in order, of kernels by name.

use std::fmt;
use std::sync::Arc;

use coli_plugin_api::program::GroupId;

use super::own::Bound;
use crate::contract::RowClass;
use crate::formats::Format;

/// What is known of a device where kernels are chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceShape {
    /// Invocations of a subgroup, in every pipeline.
    pub subgroup: u32,
    /// Invocations of a workgroup, at most; 128 or more.
    pub invocations: u32,
    /// Bytes of shared memory of a workgroup; 16 KiB or more.
    pub shared_bytes: u32,
    /// Rows, columns and depth of the f16 matrices with f32 sums that a subgroup multiplies; `None` where it does not.
    pub matrix: Option<(u32, u32, u32)>,
    /// Workgroups of a grid in x, at most; those in y and z are 65,535.
    pub groups_x: u32,
}

/// An operand or output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    /// Numbers of a row that the op sees.
    pub width: u32,
}

/// A weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightShape {
    /// How it is stored.
    pub format: Format,
    /// Rows; a vector has one.
    pub rows: u32,
    /// Columns.
    pub cols: u32,
}

/// A matrix of experts: that of each expert of a layer.
pub type MatrixShape = WeightShape;

/// The experts of a layer. All of them have the same shapes and formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertShape {
    /// Experts.
    pub count: u32,
    /// `[hidden, width]`.
    pub gate: MatrixShape,
    /// `[hidden, width]`.
    pub up: MatrixShape,
    /// `[width, hidden]`.
    pub down: MatrixShape,
}

/// A state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateForm {
    /// Positions of a row.
    pub stride: u32,
    /// Numbers of a row; 0 for an accumulator.
    pub width: u32,
    /// Rows of a page.
    pub page_rows: u32,
    /// Whether rows are stored as binary16; their width is then even.
    pub half: bool,
}

/// What a plan may depend on, beyond the op itself. Bits of exact mode must not depend on `cap` or `class`, those of fast mode not on
/// `cap`.
pub struct PlanCall<'a> {
    /// For what purpose rows run.
    pub class: RowClass,
    /// Rows, at most: 1, 2, 4, 8, 16, or a multiple of 64.
    pub cap: u32,
    /// Positions of a conversation, at most.
    pub context: u32,
    /// Whether fast mode's kernels may be taken.
    pub fast: bool,
    /// The device.
    pub device: &'a DeviceShape,
    /// Operands, in order.
    pub ins: &'a [Operand],
    /// Outputs, in order.
    pub outs: &'a [Operand],
    /// Weights, in order.
    pub weights: &'a [WeightShape],
    /// States, in order.
    pub states: &'a [StateForm],
    /// The op's expert groups, in order.
    pub groups: &'a [GroupId],
    /// Where the rest is asked for.
    pub facts: &'a dyn PlanFacts,
}

/// What only some ops ask.
pub trait PlanFacts {
    /// The experts of a layer of a group, `None` where they are not all alike.
    fn experts(&self, group: GroupId, layer: u32) -> Option<ExpertShape>;
}

/// A kernel by name; those that read stored matrices exist for every format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KernelName {
    /// As [`super::KernelText`] has it.
    pub name: &'static str,
    /// The format of the matrix that it reads.
    pub format: Option<Format>,
}

impl KernelName {
    /// The name of its module.
    pub fn module(&self) -> String {
        match self.format {
            None => self.name.to_owned(),
            Some(format) => format!("{}.{}", self.name, format.name()),
        }
    }
}

impl From<&'static str> for KernelName {
    fn from(name: &'static str) -> Self {
        Self { name, format: None }
    }
}

/// An argument, pushed in this order after the head that every kernel has. Push constants are 128 bytes, of which the head takes 16.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arg {
    /// An operand: `Operand` in GLSL, 12 bytes. It is read.
    In(usize),
    /// An output: `Operand`, 12 bytes. It is written.
    Out(usize),
    /// An output that an earlier dispatch of the plan has written, to be read and written: `Operand`, 12 bytes.
    OutAgain(usize),
    /// A weight as f32 numbers, decoded when it was uploaded: `Address`, 8 bytes. For vectors.
    Vector(usize),
    /// A weight as it is stored: `Address`, 8 bytes.
    Matrix(usize),
    /// The table of a layer's experts of a group (by its place in the op): `Address`, 8 bytes. Three addresses an expert: gate, up, down.
    Experts(usize, u32),
    /// A state that is read: `State`, 16 bytes.
    State(usize),
    /// A state that is written, and perhaps read: `State`, 16 bytes.
    StateMut(usize),
    /// Memory of the plan's [`Plan::scratch`]: `Address`, 8 bytes. It is read and written.
    Scratch(usize),
    /// A table of [`Plan::tables`]: `Address`, 8 bytes. The entry of row 0 of [`Extent::ROWS`] comes first.
    Table(usize),
    /// How a token is chosen from each wanted row: a word of the step's words, 4 bytes; see [`SAMPLING_WORDS`].
    Sampling,
    /// An address that the kernel does not use: 8 bytes.
    Null,
    /// A number: 4 bytes.
    Word(u32),
    /// A number: 4 bytes.
    Float(f32),
}

/// How many rows of a state a row sees, at most over the rows that run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seen {
    /// Positions of a row of the state: those are seen whose groups are complete.
    pub stride: u32,
    /// The last so many of them; 0 is all.
    pub window: u32,
}

/// A number of workgroups, at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extent {
    /// So many.
    Fixed(u32),
    /// One for each `per` rows of the cap, begun ones included, `times` so many.
    Rows {
        /// Rows of a workgroup.
        per: u32,
        /// Workgroups for them.
        times: u32,
    },
    /// What the step itself says: one for each `per` rows that are seen, begun ones included, `times` so many and `plus` more.
    Seen {
        /// Which rows.
        seen: Seen,
        /// Rows of a workgroup.
        per: u32,
        /// Workgroups for them.
        times: u32,
        /// More workgroups.
        plus: u32,
    },
}

impl Extent {
    /// One for each row.
    pub const ROWS: Self = Self::Rows { per: 1, times: 1 };

    /// As many workgroups as so many numbers of each row need.
    pub fn of(numbers: u32, per: u32) -> Self {
        Self::Fixed(numbers.div_ceil(per).max(1))
    }
}

/// Workgroups in x, y and z.
pub type Grid = [Extent; 3];

/// One launch of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Dispatch {
    /// The kernel.
    pub kernel: KernelName,
    /// Specialization constants 0, 1, ...; the first one is always the number of invocations of a workgroup.
    pub constants: Vec<u32>,
    /// Arguments.
    pub args: Vec<Arg>,
    /// Workgroups.
    pub grid: Grid,
}

/// Memory that a plan's dispatches share, of no worth before or after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scratch {
    /// Words of 4 bytes.
    pub words: u64,
}

/// Words of an entry that says how a token is chosen: bits of temperature, `top_k`, bits of `top_p` and of `min_p`, the seed's lower and
/// upper half, and two that are 0.
pub const SAMPLING_WORDS: u32 = 8;

/// Fills the entry of a row from an operand's integers of that row.
pub type FillRow = Arc<dyn Fn(&[i32], &mut [f32]) + Send + Sync>;

/// A table that the host fills for the rows of each step: numbers that a device would not give to the bit, such as angles.
#[derive(Clone)]
pub struct RowTable {
    /// Tables of equal keys over the same row input are one.
    pub key: Vec<u8>,
    /// The operand that it is made from, which must be a row input.
    pub input: usize,
    /// Numbers of a row.
    pub width: u32,
    /// Fills the entry of a row.
    pub fill: FillRow,
}

impl fmt::Debug for RowTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowTable").field("key", &self.key).field("input", &self.input).field("width", &self.width).finish()
    }
}

/// What an op asks of a device. A dispatch sees what the ones before it wrote.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// In order.
    pub dispatches: Vec<Dispatch>,
    /// What [`Arg::Scratch`] counts.
    pub scratch: Vec<Scratch>,
    /// What [`Arg::Table`] counts.
    pub tables: Vec<RowTable>,
    /// A kernel that is bound to memory instead of having addresses, of an op that a plugin brings.
    pub bound: Option<Arc<Bound>>,
    /// What `FAIL(n, ...)` in a kernel means, from 0 on, as an error says it: `{row}` is the row of the step, `{detail}` the number given.
    pub faults: &'static [&'static str],
}

impl Plan {
    /// A plan of one dispatch.
    pub fn one(dispatch: Dispatch) -> Self {
        Self { dispatches: vec![dispatch], ..Self::default() }
    }
}
