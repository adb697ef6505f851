//! What crosses the border as JSON: facts about a stored model in, the plugin's description of it out. Unknown fields are refused.
//!
//! Ids are positions: weight 3 is `weights[3]`, and so for states, groups and domains. Segments name them by these ids.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::program::{GroupId, StateId, WeightId};

/// What kind of folder or file the model is stored in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Container {
    /// A folder of safetensors with a `config.json`; tensors have their published names.
    Hf,
    /// A GGUF file; `config` is its metadata.
    Gguf,
}

/// One stored tensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorFact {
    /// Its name in the container.
    pub name: String,
    /// Its dimensions, outermost first.
    pub shape: Vec<u64>,
    /// Its stored type, for example `bf16`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// What the host tells a plugin about a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescribeRequest {
    /// Where `config` and the tensor names come from.
    pub container: Container,
    /// `config.json`, or the GGUF metadata.
    pub config: serde_json::Value,
    /// Every stored tensor.
    pub tensors: Vec<TensorFact>,
    /// The decoded text of each token id, when the manifest asks for it. A token whose bytes are no whole characters has U+FFFD and its
    /// spelling in the tokenizer's file; an id without a token has no characters.
    pub tokenizer: Option<Vec<Option<String>>>,
}

/// A plugin's description of one model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The most positions that a conversation may have.
    pub context_max: u32,
    /// Token ids are below this; also the width of the `logits` port.
    pub vocab: u32,
    /// Weights outside expert groups.
    pub weights: Vec<Weight>,
    /// States.
    pub states: Vec<State>,
    /// Expert groups.
    pub groups: Vec<ExpertGroup>,
    /// Segments, in the order in which a step runs them.
    pub segments: Vec<SegmentName>,
}

/// A weight: a role and a shape for the recording, a view for the loader. Its format is the stored tensor's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weight {
    /// What it is, for messages: `layer.3.q`.
    pub role: String,
    /// `[out, in]` of a matrix, `[n]` of a vector.
    pub shape: Vec<u32>,
    /// How it is cut from stored tensors.
    pub view: View,
    /// Whether it is a table that is read by rows, and may stay on disk.
    #[serde(default)]
    pub table: Option<Residency>,
}

/// Where a table may live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Residency {
    /// Wherever the host likes.
    Any,
    /// Too large for RAM: rows are read from disk.
    Disk,
}

/// A weight as a function of stored tensors, from a closed list, so that the host can read exactly the bytes that are needed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum View {
    /// A whole stored tensor.
    Tensor(String),
    /// `count` rows from `start`, every `step`-th.
    Rows {
        /// What the rows are of.
        of: Box<View>,
        /// The first row.
        start: u32,
        /// How many.
        count: u32,
        /// Distance between rows; 1 is a plain range.
        step: u32,
    },
    /// Rows of several views, one after the other.
    Concat(Vec<View>),
    /// `count` blocks of `rows` rows, the first from `start`, each `step` rows after the one before: rows of every head, for example.
    Blocks {
        /// What the rows are of.
        of: Box<View>,
        /// The first row of the first block.
        start: u32,
        /// Rows of a block.
        rows: u32,
        /// How many blocks.
        count: u32,
        /// Rows from the start of a block to that of the next.
        step: u32,
    },
    /// All numbers of a view as one vector, row after row.
    Flat(Box<View>),
    /// The matrices of a tensor `[n, rows, in]`, one above the other.
    Stacked(Box<View>),
}

impl View {
    /// A whole stored tensor.
    pub fn tensor(name: impl Into<String>) -> Self {
        Self::Tensor(name.into())
    }

    /// `count` blocks of `rows` rows of this view, the first from `start`, each `step` rows after the one before.
    pub fn blocks(self, start: u32, rows: u32, count: u32, step: u32) -> Self {
        Self::Blocks { of: Box::new(self), start, rows, count, step }
    }

    /// Its matrices, one above the other.
    pub fn stacked(self) -> Self {
        Self::Stacked(Box::new(self))
    }

    /// All its numbers as one vector.
    pub fn flat(self) -> Self {
        Self::Flat(Box::new(self))
    }
}

/// A state: what the model remembers of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// What it is, for messages: `layer.3.kv`.
    pub role: String,
    /// The segment that writes it.
    pub owner: SegmentName,
    /// Whether other segments read it; such a state keeps all its rows.
    #[serde(default)]
    pub shared: bool,
    /// What it holds.
    pub kind: StateKind,
}

/// The two kinds of state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum StateKind {
    /// One row for every `stride` positions, addressed by `position / stride`.
    Rows {
        /// The row's parts, in order.
        parts: Vec<RowPart>,
        /// Positions a row.
        stride: u32,
        /// Which rows are remembered.
        keep: Keep,
    },
    /// An accumulator for each conversation, with these dimensions.
    Accumulator {
        /// Dimensions, outermost first.
        shape: Vec<u32>,
    },
}

/// One part of a state's row, for example K or V.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowPart {
    /// Numbers in it.
    pub width: u32,
    /// Whether fast mode may store it in f16.
    pub may_round: bool,
}

/// Which rows of a `Rows` state are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// All of them.
    All,
    /// Those of the last `n` positions before the row that reads.
    Last(u32),
}

/// Experts that share a shape: the routed MLPs of a model's layers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpertGroup {
    /// What it is, for messages: `experts`.
    pub role: String,
    /// Experts a layer.
    pub count: u32,
    /// Width of an expert's input and output.
    pub width: u32,
    /// Width of an expert's hidden row.
    pub hidden: u32,
    /// What stands between the two matrix products.
    pub activation: Activation,
    /// Whether the router's weight multiplies the hidden row instead of the output.
    #[serde(default)]
    pub weight_before_down: bool,
    /// Routed layers or draft heads, which have rooms of their own.
    pub class: GroupClass,
    /// The matrices of each layer; `moe` names a layer by its position here.
    pub layers: Vec<ExpertLayer>,
}

/// What kind of layers a group serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupClass {
    /// The model's own layers.
    Main,
    /// Draft heads.
    Extra,
}

/// The product of a gate and an up row; its formulas are those of the `glu` op.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Activation {
    /// `silu(gate) * up`.
    Silu,
    /// `silu(min(gate, limit)) * clamp(up, -limit, limit)`.
    SiluClamp {
        /// The bound.
        limit: f32,
    },
}

/// Where the matrices of one layer's experts are stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpertLayer {
    /// `[hidden, width]` of each expert.
    pub gate: ExpertView,
    /// `[hidden, width]` of each expert.
    pub up: ExpertView,
    /// `[width, hidden]` of each expert.
    pub down: ExpertView,
}

/// One matrix of each expert of a layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ExpertView {
    /// A tensor for each expert; `{expert}` in the name stands for its number.
    PerExpert(String),
    /// Rows of one tensor `[count, rows, in]`: of each expert `rows` rows from `start`.
    Fused {
        /// The tensor.
        tensor: String,
        /// The first row within an expert.
        start: u32,
    },
}

/// A segment's name; its text is `setup`, `embed`, `layer.N`, `head`, `encode.N`, `draft.N` or `draft_feed.N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SegmentName {
    /// Runs once after loading; its outputs are constants.
    Setup,
    /// A part of an encoder; runs on request and has no state.
    Encode(u32),
    /// From tokens to the first layer's input.
    Embed,
    /// A layer. Cuts between executors fall between layers.
    Layer(u32),
    /// From the last layer's output to logits, on the rows whose outputs are wanted.
    Head,
    /// A draft head.
    Draft(u32),
    /// Fills a draft head's states from accepted rows.
    DraftFeed(u32),
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup => f.write_str("setup"),
            Self::Embed => f.write_str("embed"),
            Self::Head => f.write_str("head"),
            Self::Encode(i) => write!(f, "encode.{i}"),
            Self::Layer(i) => write!(f, "layer.{i}"),
            Self::Draft(i) => write!(f, "draft.{i}"),
            Self::DraftFeed(i) => write!(f, "draft_feed.{i}"),
        }
    }
}

impl FromStr for SegmentName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, index) = match text.split_once('.') {
            None => (text, None),
            Some((kind, index)) => (kind, Some(index)),
        };
        let index = match index {
            None => None,
            Some(digits) => {
                let number: u32 = digits.parse().map_err(|_| format!("`{text}` is not a segment name"))?;
                // One spelling each: `layer.01` and `layer.+1` would be a second name for the same segment.
                if number.to_string() != digits {
                    return Err(format!("`{text}` is not a segment name"));
                }
                Some(number)
            }
        };
        match (kind, index) {
            ("setup", None) => Ok(Self::Setup),
            ("embed", None) => Ok(Self::Embed),
            ("head", None) => Ok(Self::Head),
            ("encode", Some(i)) => Ok(Self::Encode(i)),
            ("layer", Some(i)) => Ok(Self::Layer(i)),
            ("draft", Some(i)) => Ok(Self::Draft(i)),
            ("draft_feed", Some(i)) => Ok(Self::DraftFeed(i)),
            _ => Err(format!("`{text}` is not a segment name")),
        }
    }
}

impl Serialize for SegmentName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SegmentName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A described weight, as a recording uses it: id and shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightRef {
    /// Its id.
    pub id: WeightId,
    /// Rows of a matrix; 1 for a vector.
    pub rows: u32,
    /// Columns of a matrix, length of a vector.
    pub cols: u32,
}

impl Description {
    /// Adds a matrix `[rows, cols]`.
    pub fn matrix(&mut self, role: impl Into<String>, rows: u32, cols: u32, view: View) -> WeightRef {
        let id = self.add_weight(role.into(), vec![rows, cols], view);
        WeightRef { id, rows, cols }
    }

    /// Adds a vector of `len` numbers.
    pub fn vector(&mut self, role: impl Into<String>, len: u32, view: View) -> WeightRef {
        let id = self.add_weight(role.into(), vec![len], view);
        WeightRef { id, rows: 1, cols: len }
    }

    /// Adds a state.
    pub fn state(&mut self, state: State) -> StateId {
        self.states.push(state);
        StateId(self.states.len() as u32 - 1)
    }

    /// Adds an expert group.
    pub fn group(&mut self, group: ExpertGroup) -> GroupId {
        self.groups.push(group);
        GroupId(self.groups.len() as u32 - 1)
    }

    fn add_weight(&mut self, role: String, shape: Vec<u32>, view: View) -> WeightId {
        self.weights.push(Weight { role, shape, view, table: None });
        WeightId(self.weights.len() as u32 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn segment_names_have_one_spelling() {
        for name in ["setup", "embed", "head", "layer.0", "layer.92", "encode.1", "draft.0", "draft_feed.2"] {
            let parsed: SegmentName = name.parse().unwrap();
            assert_eq!(parsed.to_string(), name);
        }
        for name in ["", "layer", "layer.", "layer.01", "layer.+1", "head.0", "layer.4294967296", "layers.0"] {
            assert!(name.parse::<SegmentName>().is_err(), "{name}");
        }
    }

    #[test]
    fn unknown_fields_are_refused() {
        let text = r#"{"context_max":1,"vocab":1,"weights":[],"states":[],"groups":[],"segments":[],"extra":1}"#;
        assert!(serde_json::from_str::<Description>(text).unwrap_err().to_string().contains("extra"));
    }

    /// One of everything.
    fn sample() -> Description {
        let mut d =
            Description { context_max: 9, vocab: 8, segments: vec![SegmentName::Embed, SegmentName::Layer(0)], ..Description::default() };
        let rows = View::Rows { of: Box::new(View::tensor("a")), start: 1, count: 2, step: 3 };
        let blocks = View::tensor("b").blocks(0, 2, 3, 4);
        d.matrix("m", 2, 3, View::Concat(vec![blocks, rows, View::tensor("b").flat()]));
        d.weights[0].table = Some(Residency::Disk);
        let parts = vec![RowPart { width: 4, may_round: true }];
        for kind in [StateKind::Rows { parts, stride: 1, keep: Keep::Last(5) }, StateKind::Accumulator { shape: vec![6, 7] }] {
            d.state(State { role: "s".into(), owner: SegmentName::Layer(0), shared: true, kind });
        }
        let fused = |start| ExpertView::Fused { tensor: "c".into(), start };
        d.group(ExpertGroup {
            role: "e".into(),
            count: 4,
            width: 2,
            hidden: 3,
            activation: Activation::SiluClamp { limit: 7.0 },
            weight_before_down: true,
            class: GroupClass::Extra,
            layers: vec![ExpertLayer { gate: fused(0), up: fused(3), down: ExpertView::PerExpert("d.{expert}".into()) }],
        });
        d
    }

    /// What is read survives the border once more.
    fn holds(text: &[u8]) -> bool {
        let Ok(description) = serde_json::from_slice::<Description>(text) else { return false };
        let again = serde_json::to_string(&description).unwrap();
        assert_eq!(serde_json::from_str::<Description>(&again).unwrap(), description);
        true
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn damaged_descriptions_never_panic(
            changes in prop::collection::vec((0usize..4096, any::<u8>()), 0..4),
            noise in any::<Vec<u8>>(),
        ) {
            let mut text = serde_json::to_vec(&sample()).unwrap();
            prop_assert!(holds(&text));
            for (at, byte) in changes {
                let at = at % text.len();
                text[at] = byte;
            }
            holds(&text);
            holds(&noise);
        }

        /// A number, a digit or a letter in place of another keeps the JSON whole.
        #[test]
        fn descriptions_with_other_values_never_panic(at in 0usize..4096, byte in "[0-9a-z]") {
            let mut text = serde_json::to_vec(&sample()).unwrap();
            let places: Vec<usize> = (0..text.len()).filter(|at| text[*at].is_ascii_alphanumeric()).collect();
            text[places[at % places.len()]] = byte.as_bytes()[0];
            holds(&text);
        }
    }
}
