//! A case: a tiny recording, what goes into it, and what an independent implementation says comes out. Written once, run on every
//! executor.

use std::collections::HashMap;

use coli_plugin_api::describe::Description;
use coli_plugin_api::program::{GroupId, Recording, WeightId};

use super::{ExpertMatrix, RowAt, Sampling, WeightStore};
use crate::formats::{Format, WeightView};

/// Numbers of a port.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// Activations.
    F32(Vec<f32>),
    /// Ids.
    I32(Vec<i32>),
}

/// What a port must give.
#[derive(Debug, Clone)]
pub struct Expected {
    /// The port.
    pub port: String,
    /// Its numbers, row after row.
    pub data: Data,
    /// How far a number may be off, as a share of the largest magnitude in `data`; ids must be equal.
    pub tolerance: f32,
}

/// One case of one op.
#[derive(Debug, Clone)]
pub struct Case {
    /// What it shows.
    pub name: String,
    /// Who computed the expected numbers.
    pub from: String,
    /// Weights' shapes, states and groups that the recording names.
    pub description: Description,
    /// The weights themselves.
    pub weights: CaseWeights,
    /// The recording.
    pub recording: Recording,
    /// The step's rows.
    pub rows: Vec<RowAt>,
    /// The rows' token ids.
    pub tokens: Vec<i32>,
    /// The rows of the step whose outputs are wanted.
    pub outs: Vec<u32>,
    /// How tokens are chosen, in every conversation.
    pub sampling: Sampling,
    /// Ports that come in.
    pub inputs: Vec<(String, Data)>,
    /// Ports that must come out.
    pub expected: Vec<Expected>,
}

/// Weights of a case, or of any small model made in memory.
#[derive(Debug, Clone, Default)]
pub struct CaseWeights {
    weights: Vec<Stored>,
    experts: HashMap<(GroupId, u32, u32, ExpertMatrix), Stored>,
}

#[derive(Debug, Clone)]
struct Stored {
    format: Format,
    rows: usize,
    cols: usize,
    bytes: Vec<u8>,
}

impl Stored {
    fn new(format: Format, rows: usize, cols: usize, numbers: &[f32]) -> Self {
        assert_eq!(numbers.len(), rows * cols, "numbers of a {rows}x{cols} matrix");
        let bytes = numbers.chunks(cols.max(1)).flat_map(|row| encode(format, row)).collect();
        Self { format, rows, cols, bytes }
    }

    fn view(&self) -> Option<WeightView<'_>> {
        WeightView::new(self.format, self.rows, self.cols, &self.bytes)
    }
}

/// The bytes of a row whose numbers the format stores exactly.
fn encode(format: Format, row: &[f32]) -> Vec<u8> {
    let (values, scales) = format.encode_row(row).unwrap_or_else(|| panic!("{} is not written", format.name()));
    let mut back = vec![0.0; row.len()];
    format.decode_row(&values, &scales, &mut back);
    let exact = row.iter().zip(&back).all(|(number, back)| back.to_bits() == number.to_bits());
    assert!(exact && scales.is_empty(), "{row:?} is not exact in {}", format.name());
    values
}

impl CaseWeights {
    /// Adds the next weight of the description; every number must be exact in the format.
    pub fn push(&mut self, format: Format, rows: usize, cols: usize, numbers: &[f32]) {
        self.weights.push(Stored::new(format, rows, cols, numbers));
    }

    /// Adds a matrix of an expert.
    pub fn push_expert(&mut self, at: (GroupId, u32, u32, ExpertMatrix), rows: usize, cols: usize, numbers: &[f32]) {
        self.experts.insert(at, Stored::new(Format::F32, rows, cols, numbers));
    }
}

impl WeightStore for CaseWeights {
    fn weight(&self, id: WeightId) -> Option<WeightView<'_>> {
        self.weights.get(id.0 as usize)?.view()
    }

    fn expert(&self, group: GroupId, layer: u32, expert: u32, matrix: ExpertMatrix) -> Option<WeightView<'_>> {
        self.experts.get(&(group, layer, expert, matrix))?.view()
    }
}
