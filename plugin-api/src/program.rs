//! A recorded segment as plain data: values, domains, inputs, ops and ports.
//!
//! A value is `[rows, width]` over a domain, written once. An op's operands are column ranges of values or inputs. Weights, states and
//! expert groups are named by their ids in the [`crate::describe::Description`]. Nothing here has a shape that depends on the context
//! or a count that a device decides.

use serde::{Deserialize, Serialize};

/// A value of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);
/// A row input of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InputId(pub u32);
/// A domain of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DomainId(pub u16);
/// A weight of the description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WeightId(pub u32);
/// A state of the description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(pub u32);
/// An expert group of the description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u32);

/// What a value's numbers are. Both take four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Ty {
    /// Activations.
    F32 = 0,
    /// Ids and lists; -1 is none.
    I32 = 1,
}

/// Where a domain's rows come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Domain {
    /// The rows of a step.
    Tokens,
    /// The rows of a step whose outputs are wanted.
    Outs,
    /// Rows that the host gives, at most `max`.
    Host {
        /// The domain's name.
        name: String,
        /// The most rows.
        max: u32,
    },
    /// `rows` rows for each conversation.
    Block {
        /// Rows a conversation.
        rows: u32,
    },
    /// A constant number of rows.
    Fixed {
        /// Rows.
        rows: u32,
    },
}

/// A row input: numbers that come with a domain's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Its name, unique in the segment.
    pub name: String,
    /// The rows it belongs to.
    pub domain: DomainId,
    /// What its numbers are.
    pub ty: Ty,
    /// Numbers a row.
    pub width: u32,
    /// Who gives them.
    pub source: InputSource,
}

/// Who gives an input's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputSource {
    /// The request.
    Host,
    /// The step itself.
    Builtin(Builtin),
    /// The plugin's `ids` function, from a window of so many tokens.
    Ids {
        /// Tokens in the window, the row's own included.
        window: u16,
    },
}

/// Inputs that every step has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Builtin {
    /// The row's token id.
    Token = 0,
    /// The token after it: of the prompt, or the sampled one.
    NextToken = 1,
    /// Its cache position.
    Position = 2,
    /// Its conversation.
    Conversation = 3,
    /// Its rotary position, one number for each axis.
    RotaryPosition = 4,
}

impl Builtin {
    /// All of them, by code.
    pub const ALL: [Self; 5] = [Self::Token, Self::NextToken, Self::Position, Self::Conversation, Self::RotaryPosition];

    /// The name that inputs of this kind have.
    pub fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::NextToken => "next_token",
            Self::Position => "pos",
            Self::Conversation => "conv",
            Self::RotaryPosition => "rpos",
        }
    }
}

/// A value's domain, type and width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueDef {
    /// Its rows.
    pub domain: DomainId,
    /// What its numbers are.
    pub ty: Ty,
    /// Numbers a row.
    pub width: u32,
}

/// What an operand reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// A value.
    Value(ValueId),
    /// A row input.
    Input(InputId),
}

/// A column range of a value or an input. A view is free, so there is no op that splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperandRef {
    /// What is read.
    pub source: Source,
    /// Its first column.
    pub col0: u32,
    /// How many columns.
    pub ncols: u32,
}

/// How an op uses a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Access {
    /// Reads rows by position.
    Read = 0,
    /// Adds the rows of the step, by position.
    Append = 1,
    /// Advances an accumulator, in row order.
    Update = 2,
}

/// One op of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpRecord {
    /// `name@version`.
    pub name: String,
    /// What it reads.
    pub ins: Vec<OperandRef>,
    /// What it writes.
    pub outs: Vec<ValueId>,
    /// Its weights.
    pub weights: Vec<WeightId>,
    /// Its states.
    pub states: Vec<(StateId, Access)>,
    /// Its expert groups.
    pub groups: Vec<GroupId>,
    /// Its parameters, as the op's version lays them out.
    pub params: Vec<u8>,
}

/// Whether a port brings a value in or takes one out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Direction {
    /// A value that an earlier segment gave.
    In = 0,
    /// A value for later segments or the host.
    Out = 1,
}

/// A named value at a segment's border: the only way in or out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Which way.
    pub direction: Direction,
    /// The name that joins segments.
    pub name: String,
    /// The value.
    pub value: ValueId,
}

/// One recorded segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recording {
    /// Its domains.
    pub domains: Vec<Domain>,
    /// Its row inputs.
    pub inputs: Vec<Input>,
    /// Its values.
    pub values: Vec<ValueDef>,
    /// Its ops, in order.
    pub ops: Vec<OpRecord>,
    /// Its ports.
    pub ports: Vec<Port>,
}

/// Port names with a meaning for the host.
pub mod ports {
    /// The residual stream between segments.
    pub const STREAM: &str = "h";
    /// Rows after the final norm.
    pub const HIDDEN: &str = "hidden";
    /// The head's scores, one for each token id.
    pub const LOGITS: &str = "logits";
    /// The head's sampled token ids.
    pub const SAMPLED: &str = "sampled";
    /// A draft head's scores for the token after the next one.
    pub const DRAFT_LOGITS: &str = "draft_logits";
    /// A draft head's sampled token ids.
    pub const DRAFT_SAMPLED: &str = "draft_sampled";
}
