//! Ops that a plugin brings: what an author's op provides ([`OwnOp`], [`OwnKernel`]), and what crosses the border of it.
//!
//! An author seldom implements these: `coli_shaders::contract::own` turns an `Op`, the trait that the library's own ops implement, into
//! an [`OwnOp`]. A name is `vendor.op@version`; plain names are the library's. An own op has operands and outputs over one domain,
//! weights, which arrive as f32, and at most one state; it has no expert groups.

use serde::{Deserialize, Serialize};

use crate::abi::{OwnRow, RawCall, RawState_TO};
use crate::describe::{Description, StateKind};
use crate::program::{Access, Ty};
use abi_stable::sabi_types::RMut;

/// An op of a plugin's own.
pub trait OwnOp: Send + Sync {
    /// `vendor.op@version`.
    fn id(&self) -> String;
    /// Checks everything that can be known of one use before a run. An error names the operand or field and what was expected.
    fn prepare(&self, facts: &OwnFacts) -> Result<Box<dyn OwnKernel>, String>;
    /// How this use of it runs on a device; `None` where it runs on the CPU. An op with a state has no device form in this version.
    fn device(&self, facts: &OwnFacts) -> Result<Option<OwnDevice>, String> {
        let _ = facts;
        Ok(None)
    }
    /// Tiny recordings with results that an independent implementation gives, or that were worked by hand. The host runs them before it
    /// uses the op.
    fn cases(&self) -> Result<Vec<OwnCase>, String>;
}

/// One use of an own op, prepared.
pub trait OwnKernel: Send + Sync {
    /// Computes the outputs of the call's rows. Pure but for the state: it starts no threads and keeps nothing.
    fn run(&self, call: &mut OwnCall<'_>) -> Result<(), String>;
}

/// Whether an op's name is one that a plugin may bring: `vendor.op@version`, each of lowercase letters, digits and `_`.
pub fn is_own(id: &str) -> bool {
    let word = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    let number = |text: &str| text.parse::<u16>().is_ok_and(|number| number.to_string() == text);
    id.len() <= 64
        && id
            .split_once('@')
            .is_some_and(|(name, version)| number(version) && name.split_once('.').is_some_and(|(vendor, op)| word(vendor) && word(op)))
}

/// The rows that all operands and outputs of an own op have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnRows {
    /// The rows of a step.
    Tokens,
    /// The rows whose outputs are wanted.
    Outs,
}

/// An operand or output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnValue {
    /// What its numbers are.
    pub ty: Ty,
    /// Numbers a row.
    pub width: u32,
}

/// A weight's shape; a vector has one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnShape {
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub cols: u32,
}

/// All that is known of one use of an own op.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnFacts {
    /// The parameters' bytes.
    pub params: Vec<u8>,
    /// The rows of operands and outputs.
    pub rows: OwnRows,
    /// Operands, in order.
    pub ins: Vec<OwnValue>,
    /// Outputs, in order.
    pub outs: Vec<OwnValue>,
    /// Weights, in order.
    pub weights: Vec<OwnShape>,
    /// The state, with how the op uses it.
    pub state: Option<(StateKind, Access)>,
}

/// The device form of one use of an own op: one run of one kernel over all rows.
///
/// The kernel is a compute shader `main` of SPIR-V 1.5 or older. It has no addresses: its memory are storage buffers of set 0, in this
/// order from binding 0 on, each of exactly its size: operands, outputs, weights, the rows, the parameters. An operand or output is rows of
/// `width` words without gaps, as many as the row cap; a weight is f32 numbers, row after row. The rows are a word with how many of them
/// run and three of no meaning, then four words each: conversation, position, row of the step, and one of no meaning. The parameters are
/// their bytes, filled up with zeros to whole words, one at least. It writes outputs alone. Reading elsewhere gives any numbers, writing
/// elsewhere does nothing.
///
/// Specialization constants: 0 is the invocations of a workgroup, which is a row of them in x; 1 is the subgroup's size; 2 is the row cap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnDevice {
    /// The kernel, as little-endian words.
    pub spirv: Vec<u8>,
    /// How it is run.
    pub form: OwnForm,
}

/// How a kernel of an own op is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnForm {
    /// Invocations of a workgroup: 1 to 128, which every device has.
    pub workgroup: u32,
    /// Workgroups in x, y and z.
    pub grid: [OwnExtent; 3],
}

/// A number of workgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OwnExtent {
    /// So many.
    Fixed(u32),
    /// One for each `per` rows of the cap, begun ones included, `times` so many.
    Rows {
        /// Rows of a workgroup.
        per: u32,
        /// Workgroups for them.
        times: u32,
    },
}

/// Numbers as they cross the border: bits, since JSON has no exact form for every f32.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnData {
    /// Bits of activations.
    F32(Vec<u32>),
    /// Ids.
    I32(Vec<i32>),
}

/// A port's numbers, row after row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnPort {
    /// The port.
    pub port: String,
    /// Its numbers.
    pub data: OwnData,
}

/// What a port must give.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnExpected {
    /// The port and its numbers.
    pub is: OwnPort,
    /// How far a number may be off, as a share of the largest magnitude; ids must be equal.
    pub tolerance: f32,
}

/// One case of an own op: a recording of one layer, what goes in and what must come out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnCase {
    /// What it shows.
    pub name: String,
    /// Who computed the expected numbers.
    pub from: String,
    /// Weights' shapes and states that the recording names.
    pub description: Description,
    /// Bits of each weight's numbers, in the description's order.
    pub weights: Vec<Vec<u32>>,
    /// The recording of `layer.0`, in the format of [`crate::codec`].
    pub recording: Vec<u8>,
    /// Conversation and position of each row of the step.
    pub rows: Vec<(u32, u32)>,
    /// Token ids of the rows.
    pub tokens: Vec<i32>,
    /// The rows whose outputs are wanted.
    pub outs: Vec<u32>,
    /// Ports that come in.
    pub inputs: Vec<OwnPort>,
    /// Ports that must come out.
    pub expected: Vec<OwnExpected>,
}

/// An operand: columns `col0..col0 + ncols` of rows of `stride` words.
#[derive(Debug, Clone, Copy)]
pub struct OwnInput<'a> {
    /// All words of the rows.
    pub words: &'a [u32],
    /// Words of a row.
    pub stride: usize,
    /// The first column.
    pub col0: usize,
    /// How many.
    pub ncols: usize,
}

/// An output: rows of `width` words.
#[derive(Debug)]
pub struct OwnOutput<'a> {
    /// All words of the rows.
    pub words: &'a mut [u32],
    /// Words of a row.
    pub width: usize,
}

/// A weight's numbers, row after row.
#[derive(Debug, Clone, Copy)]
pub struct OwnWeight<'a> {
    /// The numbers.
    pub numbers: &'a [f32],
    /// Rows.
    pub rows: usize,
    /// Numbers of a row.
    pub cols: usize,
}

/// An own op's state.
pub struct OwnState<'a>(RawState_TO<'a, RMut<'a, ()>>);

impl OwnState<'_> {
    /// The row that a conversation has at `index` (position divided by the stride), `None` where there is none.
    pub fn row(&self, conv: u32, index: u32) -> Option<&[f32]> {
        self.0.row(conv, index).into_option().map(|row| row.as_slice())
    }

    /// The same for writing; `None` also where the op may only read.
    pub fn row_mut(&mut self, conv: u32, index: u32) -> Option<&mut [f32]> {
        self.0.row_mut(conv, index).into_option().map(|row| row.into_mut_slice())
    }

    /// The value of an accumulator before the row at `pos`, to be advanced by that row. A step's rows of a conversation ask for it in
    /// order, each once; anything else gives `None`.
    pub fn accumulator(&mut self, conv: u32, pos: u32) -> Option<&mut [f32]> {
        self.0.accumulator(conv, pos).into_option().map(|value| value.into_mut_slice())
    }
}

/// An own op over the rows of a step. That all lengths agree was checked on the way in.
pub struct OwnCall<'a> {
    /// The rows of operands and outputs, in order.
    pub rows: &'a [OwnRow],
    /// Operands, in order.
    pub ins: Vec<OwnInput<'a>>,
    /// Outputs, in order.
    pub outs: Vec<OwnOutput<'a>>,
    /// Weights, in order.
    pub weights: Vec<OwnWeight<'a>>,
    /// The state; one without rows where the op has none.
    pub state: OwnState<'a>,
}

impl<'a> OwnCall<'a> {
    /// Takes over what crossed the border, if its lengths agree.
    pub fn new(raw: RawCall<'a>) -> Result<Self, String> {
        let rows = raw.rows.as_slice();
        let holds = |len: usize, row: usize| row.checked_mul(rows.len()) == Some(len);
        let mut call = Self { rows, ins: vec![], outs: vec![], weights: vec![], state: OwnState(raw.state) };
        for (index, input) in raw.ins.into_iter().enumerate() {
            let inside = input.col0.checked_add(input.ncols).is_some_and(|end| end <= input.stride);
            if !inside || !holds(input.words.len(), input.stride) {
                return Err(format!(
                    "the host's input {index} has {} words for {} rows of {}",
                    input.words.len(),
                    rows.len(),
                    input.stride
                ));
            }
            let words = input.words.as_slice();
            call.ins.push(OwnInput { words, stride: input.stride, col0: input.col0, ncols: input.ncols });
        }
        for (index, output) in raw.outs.into_iter().enumerate() {
            if !holds(output.words.len(), output.width) {
                return Err(format!(
                    "the host's output {index} has {} words for {} rows of {}",
                    output.words.len(),
                    rows.len(),
                    output.width
                ));
            }
            call.outs.push(OwnOutput { words: output.words.into_mut_slice(), width: output.width });
        }
        for (index, weight) in raw.weights.into_iter().enumerate() {
            if weight.rows.checked_mul(weight.cols) != Some(weight.numbers.len()) {
                return Err(format!("the host's weight {index} has {} numbers for {}x{}", weight.numbers.len(), weight.rows, weight.cols));
            }
            call.weights.push(OwnWeight { numbers: weight.numbers.as_slice(), rows: weight.rows, cols: weight.cols });
        }
        Ok(call)
    }
}

#[cfg(test)]
mod tests {
    use super::is_own;

    #[test]
    fn own_names_have_a_vendor_and_a_version() {
        for id in ["outside.decay@1", "a.b@0", "v_1.op_2@65535"] {
            assert!(is_own(id), "{id}");
        }
        for id in ["decay@1", "a.b", "a.b@", "a.b@01", "a.b@-1", "a.b@65536", ".b@1", "a.@1", "a.b.c@1", "A.b@1", "a-b.c@1", "a.b@1@1", ""]
        {
            assert!(!is_own(id), "{id}");
        }
    }
}
