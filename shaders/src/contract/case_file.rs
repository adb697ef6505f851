//! Builds cases from an op folder's `cases.json`, whose numbers come from libraries that nobody here wrote
//! (`tests/ops/reference/make_cases.py`), or from numbers worked by hand.
//!
//! # Panics
//! All of this panics on a file that is not as expected: it is read by tests only.

use coli_plugin_api::describe::{
    Activation, Description, ExpertGroup, ExpertLayer, ExpertView, GroupClass, Keep, RowPart, SegmentName, State, StateKind, View,
    WeightRef,
};
use coli_plugin_api::program::{GroupId, StateId, Ty};
use coli_plugin_api::recorder::{Operand, Recorder};
use coli_plugin_api::serde_json::{Map, Value, from_str};

use super::{Case, CaseWeights, Data, Expected, ExpertMatrix, RowAt, Sampling};
use crate::formats::Format;

/// One case for each entry of a file.
pub fn build(json: &str, record: impl Fn(&mut CaseBuilder)) -> Vec<Case> {
    build_some(json, |_| true, record)
}

/// One case for each entry whose name is wanted.
pub fn build_some(json: &str, wanted: impl Fn(&str) -> bool, record: impl Fn(&mut CaseBuilder)) -> Vec<Case> {
    let entries: Vec<Value> = from_str(json).expect("cases.json is a list");
    let named = entries.into_iter().filter(|entry| wanted(entry["name"].as_str().unwrap_or_default()));
    named
        .map(|entry| {
            let mut builder = CaseBuilder::of(entry);
            record(&mut builder);
            builder.finish()
        })
        .collect()
}

/// A tensor of a case file.
struct Tensor {
    shape: Vec<usize>,
    data: Vec<f64>,
}

/// Puts a case together.
pub struct CaseBuilder {
    entry: Map<String, Value>,
    recorder: Recorder,
    case: Case,
}

impl CaseBuilder {
    fn of(entry: Value) -> Self {
        let Value::Object(entry) = entry else { panic!("a case is an object") };
        let text = |key: &str| entry[key].as_str().unwrap_or_else(|| panic!("case key `{key}`")).to_string();
        Self { case: empty(text("name"), text("from")), recorder: Recorder::default(), entry }
    }

    /// A case whose numbers are given in Rust.
    pub fn by_hand(name: &str, from: &str) -> Self {
        Self { entry: Map::new(), recorder: Recorder::default(), case: empty(name.into(), from.into()) }
    }

    /// Where record functions write.
    pub fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    fn param(&self, key: &str) -> &Value {
        self.entry["params"].get(key).unwrap_or_else(|| panic!("{}: parameter `{key}`", self.case.name))
    }

    /// A parameter that is a number.
    pub fn number(&self, key: &str) -> f64 {
        self.param(key).as_f64().unwrap_or_else(|| panic!("{}: `{key}` is a number", self.case.name))
    }

    /// A parameter that is a whole number.
    pub fn count(&self, key: &str) -> u32 {
        self.number(key) as u32
    }

    /// A parameter that is a switch.
    pub fn flag(&self, key: &str) -> bool {
        self.param(key).as_bool().unwrap_or_else(|| panic!("{}: `{key}` is a switch", self.case.name))
    }

    /// A parameter that is a word.
    pub fn text(&self, key: &str) -> &str {
        self.param(key).as_str().unwrap_or_else(|| panic!("{}: `{key}` is a word", self.case.name))
    }

    fn tensor(&self, list: &str, key: &str) -> Tensor {
        let tensor = &self.entry[list][key];
        let numbers = |value: &Value| -> Vec<f64> {
            let list = value.as_array().unwrap_or_else(|| panic!("{}: {list} `{key}`", self.case.name));
            list.iter().map(|number| number.as_f64().unwrap_or_else(|| panic!("{}: {number} in `{key}`", self.case.name))).collect()
        };
        let shape: Vec<usize> = numbers(&tensor["shape"]).into_iter().map(|len| len as usize).collect();
        let data = numbers(&tensor["data"]);
        assert_eq!(data.len(), shape.iter().product::<usize>(), "{}: numbers of `{key}`", self.case.name);
        Tensor { shape, data }
    }

    /// An input of activations: a port with one row for each row of the step.
    pub fn values(&mut self, key: &str) -> Operand {
        let tensor = self.tensor("tensors", key);
        let data = tensor.data.iter().map(|number| *number as f32).collect();
        self.port(key, tensor.shape[1], Data::F32(data))
    }

    /// An input of ids.
    pub fn ints(&mut self, key: &str) -> Operand {
        let tensor = self.tensor("tensors", key);
        let data = tensor.data.iter().map(|number| *number as i32).collect();
        self.port(key, tensor.shape[1], Data::I32(data))
    }

    /// An input of activations, by hand.
    pub fn given(&mut self, key: &str, width: usize, numbers: &[f32]) -> Operand {
        self.port(key, width, Data::F32(numbers.into()))
    }

    /// An input of ids, by hand.
    pub fn given_ids(&mut self, key: &str, width: usize, ids: &[i32]) -> Operand {
        self.port(key, width, Data::I32(ids.into()))
    }

    fn port(&mut self, key: &str, width: usize, data: Data) -> Operand {
        let (ty, len) = match &data {
            Data::F32(numbers) => (Ty::F32, numbers.len()),
            Data::I32(ids) => (Ty::I32, ids.len()),
        };
        if self.case.rows.is_empty() {
            let rows: Vec<(u32, u32)> = (0..(len / width) as u32).map(|row| (0, row)).collect();
            self.rows(&rows);
        }
        assert_eq!(len, width * self.case.rows.len(), "{}: rows of `{key}`", self.case.name);
        self.case.inputs.push((key.into(), data));
        let tokens = self.recorder.tokens();
        self.recorder.port_in(key, tokens, ty, width as u32)
    }

    /// Rows of the step as (conversation, position); otherwise they are the first positions of one conversation.
    pub fn rows(&mut self, rows: &[(u32, u32)]) {
        let at = |(row, (conv, pos)): (usize, &(u32, u32))| RowAt { conv: *conv, pos: *pos, step_row: row as u32 };
        self.case.rows = rows.iter().enumerate().map(at).collect();
        self.case.tokens = vec![0; rows.len()];
    }

    /// Rows of the step from a tensor `[T, 2]`: conversation and position.
    pub fn rows_of(&mut self, key: &str) {
        let numbers = self.tensor("tensors", key).data;
        let rows: Vec<(u32, u32)> = numbers.as_chunks::<2>().0.iter().map(|[conv, pos]| (*conv as u32, *pos as u32)).collect();
        self.rows(&rows);
    }

    /// Whether the case has this tensor.
    pub fn has(&self, key: &str) -> bool {
        self.entry["tensors"].get(key).is_some()
    }

    /// Rows at the positions of a tensor, each in a conversation of its own.
    pub fn positions(&mut self, key: &str) {
        let positions = self.tensor("tensors", key).data;
        let rows: Vec<(u32, u32)> = positions.iter().enumerate().map(|(row, pos)| (row as u32, *pos as u32)).collect();
        self.rows(&rows);
    }

    /// The rows whose outputs are wanted, from a tensor.
    pub fn wanted(&mut self, key: &str) {
        self.case.outs = self.tensor("tensors", key).data.iter().map(|row| *row as u32).collect();
    }

    /// The outputs of all rows of a tensor are wanted.
    pub fn all_wanted(&mut self) {
        let rows = self.tensor("tensors", "logits").shape[0];
        self.case.outs = (0..rows as u32).collect();
    }

    /// A weight; stored in the parameter `format` where there is one.
    pub fn weight(&mut self, key: &str) -> WeightRef {
        self.weight_by(key, |number| number)
    }

    /// The same with another number in each one's place.
    pub fn weight_by(&mut self, key: &str, of: impl Fn(f64) -> f64) -> WeightRef {
        let tensor = self.tensor("tensors", key);
        let format = match self.entry["params"].get("format").and_then(Value::as_str) {
            None | Some("f32") => Format::F32,
            Some("bf16") => Format::BF16,
            Some("f16") => Format::F16,
            Some(other) => panic!("{}: format {other}", self.case.name),
        };
        let (rows, cols) = match tensor.shape[..] {
            [len] => (1, len),
            [rows, cols] => (rows, cols),
            _ => panic!("{}: shape of `{key}`", self.case.name),
        };
        let numbers: Vec<f32> = tensor.data.iter().map(|number| of(*number) as f32).collect();
        self.case.weights.push(format, rows, cols, &numbers);
        let view = View::tensor(key);
        match tensor.shape.len() {
            1 => self.case.description.vector(key, cols as u32, view),
            _ => self.case.description.matrix(key, rows as u32, cols as u32, view),
        }
    }

    /// A vector of weights, by hand; every number must be exact in the format.
    pub fn given_vector(&mut self, key: &str, format: Format, numbers: &[f32]) -> WeightRef {
        self.case.weights.push(format, 1, numbers.len(), numbers);
        self.case.description.vector(key, numbers.len() as u32, View::tensor(key))
    }

    /// An expert group of one layer, from three tensors `[experts, rows, cols]`.
    pub fn experts(&mut self, gate: &str, up: &str, down: &str) -> GroupId {
        let id = GroupId(0);
        for (key, which) in [(gate, ExpertMatrix::Gate), (up, ExpertMatrix::Up), (down, ExpertMatrix::Down)] {
            let tensor = self.tensor("tensors", key);
            let [_, rows, cols] = tensor.shape[..] else { panic!("{}: shape of `{key}`", self.case.name) };
            for (expert, numbers) in tensor.data.chunks_exact(rows * cols).enumerate() {
                let numbers: Vec<f32> = numbers.iter().map(|number| *number as f32).collect();
                self.case.weights.push_expert((id, 0, expert as u32, which), rows, cols, &numbers);
            }
        }
        let [count, hidden, width] = self.tensor("tensors", gate).shape[..] else { panic!("{}: shape of `{gate}`", self.case.name) };
        let view = |key: &str| ExpertView::Fused { tensor: key.into(), start: 0 };
        self.case.description.group(ExpertGroup {
            role: "experts".into(),
            count: count as u32,
            width: width as u32,
            hidden: hidden as u32,
            activation: Activation::Silu,
            weight_before_down: false,
            class: GroupClass::Main,
            layers: vec![ExpertLayer { gate: view(gate), up: view(up), down: view(down) }],
        })
    }

    /// A state that keeps all its rows, with parts of these widths.
    pub fn rows_state(&mut self, widths: &[u32]) -> StateId {
        self.strided_state(widths, 1)
    }

    /// The same with a row for every `stride` positions.
    pub fn strided_state(&mut self, widths: &[u32], stride: u32) -> StateId {
        let parts = widths.iter().map(|width| RowPart { width: *width, may_round: true }).collect();
        self.state(StateKind::Rows { parts, stride, keep: Keep::All })
    }

    /// A state of any stride that keeps what it is told to, with parts of these widths.
    pub fn kept_state(&mut self, widths: &[u32], stride: u32, keep: Keep) -> StateId {
        let parts = widths.iter().map(|width| RowPart { width: *width, may_round: true }).collect();
        self.state(StateKind::Rows { parts, stride, keep })
    }

    /// An accumulator of these dimensions.
    pub fn accumulator_state(&mut self, shape: &[u32]) -> StateId {
        self.state(StateKind::Accumulator { shape: shape.into() })
    }

    fn state(&mut self, kind: StateKind) -> StateId {
        self.case.description.state(State { role: "kv".into(), owner: SegmentName::Layer(0), shared: false, kind })
    }

    /// An output that must equal a tensor of the file.
    pub fn output(&mut self, key: &str, operand: Operand) {
        let data = self.tensor("outputs", key).data;
        let data = match operand.ty {
            Ty::F32 => Data::F32(data.iter().map(|number| *number as f32).collect()),
            Ty::I32 => Data::I32(data.iter().map(|number| *number as i32).collect()),
        };
        let tolerance = self.entry["tolerance"].as_f64().unwrap_or_else(|| panic!("{}: tolerance", self.case.name)) as f32;
        self.recorder.port_out(key, operand);
        self.case.expected.push(Expected { port: key.into(), data, tolerance });
    }

    /// An output that must equal numbers worked by hand.
    pub fn expect(&mut self, key: &str, operand: Operand, numbers: &[f32], tolerance: f32) {
        self.recorder.port_out(key, operand);
        self.case.expected.push(Expected { port: key.into(), data: Data::F32(numbers.into()), tolerance });
    }

    /// The case.
    pub fn finish(self) -> Case {
        let Self { recorder, mut case, .. } = self;
        case.recording = recorder.finish().unwrap_or_else(|fault| panic!("{}: {fault}", case.name));
        case.description.segments = vec![SegmentName::Layer(0)];
        case.description.context_max = case.rows.iter().map(|row| row.pos + 1).max().unwrap_or(1);
        case.description.vocab = 1;
        case
    }
}

fn empty(name: String, from: String) -> Case {
    Case {
        name,
        from,
        description: Description::default(),
        weights: CaseWeights::default(),
        recording: Default::default(),
        rows: vec![],
        tokens: vec![],
        outs: vec![],
        sampling: Sampling::GREEDY,
        inputs: vec![],
        expected: vec![],
    }
}
