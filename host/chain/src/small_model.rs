//! A small model for tests: its description and recordings use every op of the library, its weights are a function of their ids, and
//! [`reference`] computes its pass a second time with plain loops in f64.

use std::sync::LazyLock;

use coli_base::Result;
use coli_plugin_api::codec;
use coli_plugin_api::describe::{
    Activation, Description, ExpertGroup, ExpertLayer, ExpertView, GroupClass, Keep, RowPart, SegmentName, State, StateKind, View,
    WeightRef,
};
use coli_plugin_api::program::{Builtin, GroupId, OpRecord, Recording, StateId, Ty, WeightId, ports};
use coli_plugin_api::recorder::{Operand, Recorder};
use coli_shaders::contract::{ExpertMatrix, WeightStore};
use coli_shaders::formats::{Format, WeightView};
use coli_shaders::ops::attend::AttendParams;
use coli_shaders::ops::glu::{GluKind, GluParams};
use coli_shaders::ops::norm::NormParams;
use coli_shaders::ops::rope::{RopeParams, RopeStyle};
use coli_shaders::ops::route::RouteParams;
use coli_shaders::ops::{append, attend, ew, gather, glu, matmul, moe, norm, rope, route, sample, take};

use crate::Program;
use crate::program::OpTable;

pub(crate) mod reference;

pub(crate) const HIDDEN: u32 = 8;
pub(crate) const HEADS: u32 = 2;
pub(crate) const HEAD: u32 = 4;
pub(crate) const EXPERTS: u32 = 4;
pub(crate) const CHOSEN: u32 = 2;
pub(crate) const INNER: u32 = 6;
pub(crate) const VOCAB: u32 = 11;
pub(crate) const CONTEXT: u32 = 40;
pub(crate) const EPS: f32 = 1e-5;
pub(crate) const THETA: f64 = 100.0;
pub(crate) const EXPERT_GROUP: GroupId = GroupId(0);

/// Weights of a layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layer {
    pub attention_norm: WeightRef,
    pub q: WeightRef,
    pub k: WeightRef,
    pub v: WeightRef,
    pub o: WeightRef,
    pub mlp_norm: WeightRef,
    pub router: WeightRef,
    pub gate: WeightRef,
    pub up: WeightRef,
    pub down: WeightRef,
    pub kv: StateId,
}

/// A description and the recordings of its segments, to be damaged or built.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub description: Description,
    pub recordings: Vec<(SegmentName, Recording)>,
    pub embed: WeightRef,
    pub norm: WeightRef,
    pub head: WeightRef,
    pub layers: Vec<Layer>,
}

impl Parts {
    /// The valid model of so many layers.
    pub fn new(layers: u32) -> Self {
        let mut d = Description { context_max: CONTEXT, vocab: VOCAB, ..Description::default() };
        let embed = d.matrix("embed", VOCAB, HIDDEN, View::tensor("embed"));
        let norm = d.vector("norm", HIDDEN, View::tensor("norm"));
        let head = d.matrix("head", VOCAB, HIDDEN, View::tensor("head"));
        let layers: Vec<Layer> = (0..layers).map(|index| describe_layer(&mut d, index)).collect();
        d.group(experts(layers.len()));
        let names = (0..layers.len() as u32).map(SegmentName::Layer);
        d.segments = [SegmentName::Embed].into_iter().chain(names).chain([SegmentName::Head]).collect();
        let mut parts = Self { description: d, recordings: vec![], embed, norm, head, layers };
        parts.recordings = parts.description.segments.iter().map(|name| (*name, parts.record(*name))).collect();
        parts
    }

    fn record(&self, name: SegmentName) -> Recording {
        let mut r = Recorder::default();
        match name {
            SegmentName::Embed => record_embed(&mut r, self.embed),
            SegmentName::Layer(index) => record_layer(&mut r, &self.layers[index as usize], index),
            _ => record_head(&mut r, self.norm, self.head),
        }
        r.finish().unwrap()
    }

    /// The recording of a segment.
    pub fn segment(&mut self, name: SegmentName) -> &mut Recording {
        let found = self.recordings.iter_mut().find(|(known, _)| *known == name);
        &mut found.unwrap_or_else(|| panic!("no segment {name}")).1
    }

    /// The first op of this name in a segment.
    pub fn op(&mut self, segment: SegmentName, name: &str) -> &mut OpRecord {
        let found = self.segment(segment).ops.iter_mut().find(|op| op.name == name);
        found.unwrap_or_else(|| panic!("no op {name} in {segment}"))
    }

    /// The segments as bytes; an error where the format has no place for a damage.
    pub fn encoded(&self) -> std::result::Result<Vec<(SegmentName, Vec<u8>)>, String> {
        self.recordings.iter().map(|(name, recording)| Ok((*name, codec::encode(recording)?))).collect()
    }

    pub fn build(&self) -> Result<Program> {
        Program::build(&self.description, &self.encoded().unwrap(), &OpTable::library(), &[])
    }
}

fn describe_layer(d: &mut Description, index: u32) -> Layer {
    let state = |width| RowPart { width, may_round: true };
    let kind = StateKind::Rows { parts: vec![state(HEAD), state(HEAD)], stride: 1, keep: Keep::All };
    let kv = d.state(State { role: format!("layer.{index}.kv"), owner: SegmentName::Layer(index), shared: false, kind });
    let mut matrix = |what: &str, rows, cols| {
        let name = format!("layer.{index}.{what}");
        d.matrix(name.clone(), rows, cols, View::tensor(name))
    };
    let (q, k, v) = (matrix("q", HEADS * HEAD, HIDDEN), matrix("k", HEAD, HIDDEN), matrix("v", HEAD, HIDDEN));
    let (o, router) = (matrix("o", HIDDEN, HEADS * HEAD), matrix("router", EXPERTS, HIDDEN));
    let (gate, up, down) = (matrix("gate", INNER, HIDDEN), matrix("up", INNER, HIDDEN), matrix("down", HIDDEN, INNER));
    let mut vector = |what: &str| {
        let name = format!("layer.{index}.{what}");
        d.vector(name.clone(), HIDDEN, View::tensor(name))
    };
    let (attention_norm, mlp_norm) = (vector("attention_norm"), vector("mlp_norm"));
    Layer { attention_norm, q, k, v, o, mlp_norm, router, gate, up, down, kv }
}

fn experts(layers: usize) -> ExpertGroup {
    let view = || ExpertView::PerExpert("expert.{expert}".into());
    ExpertGroup {
        role: "experts".into(),
        count: EXPERTS,
        width: HIDDEN,
        hidden: INNER,
        activation: Activation::Silu,
        weight_before_down: false,
        class: GroupClass::Main,
        layers: (0..layers).map(|_| ExpertLayer { gate: view(), up: view(), down: view() }).collect(),
    }
}

fn record_embed(r: &mut Recorder, table: WeightRef) {
    let tokens = r.tokens();
    let token = r.builtin(tokens, Builtin::Token, 1);
    let h = gather::record(r, token, table);
    r.port_out(ports::STREAM, h);
}

fn record_layer(r: &mut Recorder, layer: &Layer, index: u32) {
    let tokens = r.tokens();
    let h = r.port_in(ports::STREAM, tokens, Ty::F32, HIDDEN);
    let x = norm::record(r, h, &[layer.attention_norm], NormParams::rms(EPS));
    let attended = record_attention(r, layer, x);
    let h = ew::add(r, h, attended);
    let x = norm::record(r, h, &[layer.mlp_norm], NormParams::rms(EPS));
    let scores = matmul::record_exact(r, x, layer.router);
    let (ids, weights) = route::record(r, scores, RouteParams::softmax(CHOSEN, true));
    let routed = moe::record(r, x, ids, weights, EXPERT_GROUP, index);
    let (gate, up) = (matmul::record(r, x, layer.gate), matmul::record(r, x, layer.up));
    let inner = glu::record(r, gate, up, GluParams { kind: GluKind::Silu, limit: 0.0 });
    let shared = matmul::record(r, inner, layer.down);
    let y = ew::add(r, routed, shared);
    let h = ew::add(r, h, y);
    r.port_out(ports::STREAM, h);
}

fn record_attention(r: &mut Recorder, layer: &Layer, x: Operand) -> Operand {
    let (q, k, v) = (matmul::record(r, x, layer.q), matmul::record(r, x, layer.k), matmul::record(r, x, layer.v));
    let rpos = r.builtin(x.domain, Builtin::RotaryPosition, 1);
    let turn = RopeParams::whole(RopeStyle::Half, HEAD, THETA);
    let (q, k) = (rope::record(r, q, rpos, turn), rope::record(r, k, rpos, turn));
    append::record(r, &[k, v], layer.kv);
    let attended = attend::record(r, q, layer.kv, AttendParams::causal(HEADS, 1, HEAD, HEAD, 0.5));
    matmul::record(r, attended, layer.o)
}

fn record_head(r: &mut Recorder, norm_weight: WeightRef, head: WeightRef) {
    let tokens = r.tokens();
    let h = r.port_in(ports::STREAM, tokens, Ty::F32, HIDDEN);
    let wanted = take::record(r, h);
    let x = norm::record(r, wanted, &[norm_weight], NormParams::rms(EPS));
    let logits = matmul::record(r, x, head);
    r.port_out(ports::LOGITS, logits);
    let sampled = sample::record(r, logits);
    r.port_out(ports::SAMPLED, sampled);
}

/// Weights for any description whose matrices are small: ranges of one block of numbers, each from a place that its id gives.
#[derive(Clone)]
pub(crate) struct Numbers {
    shapes: Vec<(usize, usize)>,
    groups: Vec<ExpertGroup>,
}

static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut word = 1u32;
    let numbers = (0..BLOCK).map(|_| {
        word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (word >> 8) as f32 / (1 << 24) as f32 * 1.6 - 0.8
    });
    numbers.flat_map(f32::to_le_bytes).collect()
});

/// Numbers of the block.
const BLOCK: usize = 1 << 16;
/// Places where a matrix may start.
const STARTS: usize = 1 << 12;

impl Numbers {
    pub fn of(description: &Description) -> Self {
        let shape = |shape: &[u32]| match shape {
            [rows, cols] => (*rows as usize, *cols as usize),
            _ => (1, shape[0] as usize),
        };
        Self { shapes: description.weights.iter().map(|weight| shape(&weight.shape)).collect(), groups: description.groups.clone() }
    }

    /// Whether the block has room for every matrix.
    pub fn has_all(&self) -> bool {
        let fits = |rows: usize, cols: usize| rows.saturating_mul(cols) <= BLOCK - STARTS;
        self.shapes.iter().all(|(rows, cols)| fits(*rows, *cols))
            && self.groups.iter().all(|group| fits(group.hidden as usize, group.width as usize))
    }

    fn view(&self, seed: usize, rows: usize, cols: usize) -> Option<WeightView<'_>> {
        let start = seed.wrapping_mul(977) % STARTS * 4;
        WeightView::new(Format::F32, rows, cols, BYTES.get(start..start + rows * cols * 4)?)
    }
}

impl WeightStore for Numbers {
    fn weight(&self, id: WeightId) -> Option<WeightView<'_>> {
        let (rows, cols) = *self.shapes.get(id.0 as usize)?;
        self.view(id.0 as usize, rows, cols)
    }

    fn expert(&self, group: GroupId, layer: u32, expert: u32, matrix: ExpertMatrix) -> Option<WeightView<'_>> {
        let at = self.groups.get(group.0 as usize).filter(|at| expert < at.count && (layer as usize) < at.layers.len())?;
        let (rows, cols, which) = match matrix {
            ExpertMatrix::Gate => (at.hidden, at.width, 0),
            ExpertMatrix::Up => (at.hidden, at.width, 1),
            ExpertMatrix::Down => (at.width, at.hidden, 2),
        };
        self.view(1000 + ((layer * 31 + expert) * 3 + which) as usize, rows as usize, cols as usize)
    }
}
