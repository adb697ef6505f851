//! Weights, states and experts by the published tensor names.

use std::collections::HashSet;

use coli_blocks::mlp::Mlp;
use coli_blocks::states::Describe;
use coli_blocks::streams::Site;
use coli_plugin_api::describe::{
    Activation, Description, ExpertGroup, ExpertLayer, ExpertView, GroupClass, Residency, SegmentName, TensorFact, View, WeightRef,
};
use coli_plugin_api::program::{GroupId, StateId};

use crate::config::{Compressed, Config, LayerKind};

/// The handles that the recording uses.
pub(crate) struct Model {
    pub embed: WeightRef,
    pub layers: Vec<Layer>,
    pub norm: WeightRef,
    pub head: WeightRef,
}

/// One layer's handles.
pub(crate) struct Layer {
    pub ngrams: Option<Ngrams>,
    pub attention_site: Site,
    pub attention_norm: WeightRef,
    pub attention: Attention,
    pub mlp_site: Site,
    pub mlp_norm: WeightRef,
    pub router: WeightRef,
    pub router_bias: WeightRef,
    pub shared: Mlp,
}

/// A table of n-gram rows, and what makes keys and a value of them.
pub(crate) struct Ngrams {
    pub number: usize,
    pub table: WeightRef,
    pub kv: WeightRef,
    pub q_norm: WeightRef,
    pub k_norm: WeightRef,
}

pub(crate) struct Attention {
    pub q_down: WeightRef,
    pub q_norm: WeightRef,
    pub q_up: WeightRef,
    pub kv: WeightRef,
    pub kv_norm: WeightRef,
    pub sink: WeightRef,
    /// A matrix for each group of heads.
    pub o_down: WeightRef,
    pub o_up: WeightRef,
    pub window: StateId,
    pub compressed: Option<Shared>,
    pub makes: Option<Compressor>,
    pub chooses: Option<Index>,
}

/// Compressed rows and their index keys, which several layers read.
#[derive(Clone, Copy)]
pub(crate) struct Shared {
    pub rows: StateId,
    pub keys: StateId,
}

/// What makes compressed rows and their index keys.
pub(crate) struct Compressor {
    pub kv: WeightRef,
    /// Gates of a group's positions and the rows that wait for its end, where a group has several.
    pub pooled: Option<(WeightRef, StateId)>,
    pub norm: WeightRef,
    pub key: WeightRef,
    pub key_norm: WeightRef,
}

/// What chooses rows.
pub(crate) struct Index {
    pub q: WeightRef,
    pub head_weights: WeightRef,
}

/// The one group of experts; every layer is routed.
pub(crate) const EXPERTS: GroupId = GroupId(0);

/// `rows` says how many rows each n-gram table must have.
pub(crate) fn describe(config: &Config, rows: impl Fn(usize) -> u64) -> Result<(Model, Description), String> {
    let mut d = Description { context_max: config.context_max, vocab: config.vocab, ..Description::default() };
    let embed = d.matrix("embed", config.vocab, config.hidden, View::tensor("embed.weight"));
    let norm = d.vector("norm", config.hidden, View::tensor("norm.weight"));
    let head = d.matrix("head", config.vocab, config.hidden, View::tensor("head.weight"));
    let mut shared = vec![None; config.layers.len()];
    let mut layers = vec![];
    for (index, kind) in (0..).zip(&config.layers) {
        layers.push(layer(&mut d, config, &mut shared, &rows, index, kind)?);
    }
    d.group(experts(config));
    let names = (0..config.layers.len() as u32).map(SegmentName::Layer);
    d.segments = [SegmentName::Embed].into_iter().chain(names).chain([SegmentName::Head]).collect();
    Ok((Model { embed, layers, norm, head }, d))
}

fn layer(
    d: &mut Description,
    config: &Config,
    shared: &mut [Option<Shared>],
    rows: &impl Fn(usize) -> u64,
    index: u32,
    kind: &LayerKind,
) -> Result<Layer, String> {
    let segment = SegmentName::Layer(index);
    let tensor = |name: &str| View::tensor(format!("layers.{index}.{name}"));
    let role = |name: &str| format!("{segment}.{name}");
    let site =
        |d: &mut Description, what: &str, name: &str| Site::describe(d, &role(what), &config.streams, &format!("layers.{index}.{name}"));
    let hidden = config.hidden;
    let stored = ["w1", "w3", "w2"].map(|name| format!("layers.{index}.ffn.shared_experts.{name}.weight"));
    Ok(Layer {
        ngrams: kind.table.map(|number| ngrams(d, config, index, number, rows(number))).transpose()?,
        attention_site: site(d, "attention_site", "hc_attn"),
        attention_norm: d.vector(role("attention_norm"), hidden, tensor("attn_norm.weight")),
        attention: attention(d, config, shared, index, kind.compressed.as_ref()),
        mlp_site: site(d, "mlp_site", "hc_ffn"),
        mlp_norm: d.vector(role("mlp_norm"), hidden, tensor("ffn_norm.weight")),
        router: d.matrix(role("router"), config.routed.experts, hidden, tensor("ffn.gate.weight")),
        router_bias: d.vector(role("router_bias"), config.routed.experts, tensor("ffn.gate.bias")),
        shared: Mlp::describe(d, &role("shared"), hidden, config.routed.shared_hidden, stored),
    })
}

fn ngrams(d: &mut Description, config: &Config, index: u32, number: usize, rows: u64) -> Result<Ngrams, String> {
    // Ids name them.
    let rows = i32::try_from(rows).map_err(|_| format!("config.json: `engram_vocab_size` makes a table of {rows} rows"))? as u32;
    let tensor = |name: &str| View::tensor(engram(index, name));
    let role = |name: &str| format!("layer.{index}.ngrams.{name}");
    let streams = &config.streams;
    let ids = config.engram.as_ref().map_or(0, |engram| (engram.max_ngram - 1) * engram.heads);
    let table = d.matrix(role("table"), rows, config.engram_width, tensor("embed.weight"));
    d.weights[table.id.0 as usize].table = Some(Residency::Any);
    Ok(Ngrams {
        number,
        table,
        // A key for each stream, then one value.
        kv: d.matrix(role("kv"), streams.total() + streams.width, ids * config.engram_width, tensor("wkv.weight")),
        q_norm: d.vector(role("q_norm"), streams.total(), tensor(NORMS[0]).flat()),
        k_norm: d.vector(role("k_norm"), streams.total(), tensor(NORMS[1]).flat()),
    })
}

/// Weights of norms over streams are a row for each stream, which are read as one vector: as many numbers in another shape are not those.
pub(crate) fn check_norms(config: &Config, stored: &[TensorFact]) -> Result<(), String> {
    let expected = [config.streams.count, config.streams.width].map(u64::from);
    let layers = (0..).zip(&config.layers).filter(|(_, kind)| kind.table.is_some());
    let names: HashSet<String> = layers.flat_map(|(index, _): (u32, _)| NORMS.map(|name| engram(index, name))).collect();
    match stored.iter().find(|tensor| names.contains(&tensor.name) && tensor.shape != expected) {
        Some(TensorFact { name, shape, .. }) => Err(format!("tensor `{name}` is {shape:?}, the plugin expects {expected:?}")),
        None => Ok(()),
    }
}

/// The norms of queries and keys.
const NORMS: [&str; 2] = ["q_weight", "k_weight"];

fn engram(index: u32, name: &str) -> String {
    format!("layers.{index}.engram.{name}")
}

fn attention(d: &mut Description, config: &Config, shared: &mut [Option<Shared>], index: u32, kind: Option<&Compressed>) -> Attention {
    let segment = SegmentName::Layer(index);
    let tensor = |name: &str| View::tensor(format!("layers.{index}.attn.{name}"));
    let role = |name: &str| format!("{segment}.{name}");
    let (hidden, sizes) = (config.hidden, &config.attention);
    let width = sizes.heads * sizes.head_width;
    let makes = kind.filter(|kind| kind.source == index).map(|kind| compressor(d, config, shared, index, kind.ratio));
    Attention {
        q_down: d.matrix(role("q_down"), sizes.q_rank, hidden, tensor("wq_a.weight")),
        q_norm: d.vector(role("q_norm"), sizes.q_rank, tensor("q_norm.weight")),
        q_up: d.matrix(role("q_up"), width, sizes.q_rank, tensor("wq_b.weight")),
        kv: d.matrix(role("kv"), sizes.head_width, hidden, tensor("wkv.weight")),
        kv_norm: d.vector(role("kv_norm"), sizes.head_width, tensor("kv_norm.weight")),
        sink: d.vector(role("sink"), sizes.heads, tensor("attn_sink")),
        o_down: d.matrix(role("o_down"), sizes.o_groups * sizes.o_rank, width / sizes.o_groups, tensor("wo_a.weight")),
        o_up: d.matrix(role("o_up"), hidden, sizes.o_groups * sizes.o_rank, tensor("wo_b.weight")),
        window: Describe::own(&role("window"), segment).last(d, &[sizes.head_width], sizes.window - 1, true),
        compressed: kind.and_then(|kind| shared[kind.source as usize]),
        makes,
        chooses: kind.filter(|kind| kind.chooses).map(|_| Index {
            q: d.matrix(role("index.q"), config.index.heads * config.index.head_width, sizes.q_rank, tensor("indexer.wq_b.weight")),
            head_weights: d.matrix(role("index.head_weights"), config.index.heads, hidden, tensor("indexer.weights_proj.weight")),
        }),
    }
}

fn compressor(d: &mut Description, config: &Config, shared: &mut [Option<Shared>], index: u32, ratio: u32) -> Compressor {
    let segment = SegmentName::Layer(index);
    let tensor = |name: &str| View::tensor(format!("layers.{index}.attn.{name}.weight"));
    let role = |name: &str| format!("{segment}.compressed.{name}");
    let (hidden, width, key_width) = (config.hidden, config.attention.head_width, config.index.head_width);
    shared[index as usize] = Some(Shared {
        rows: Describe::shared(&role("rows"), segment).rows(d, &[width], ratio),
        keys: Describe::shared(&role("keys"), segment).rows(d, &[key_width], ratio),
    });
    let pooled = (ratio > 1).then(|| {
        let gate = d.matrix(role("gate"), width, hidden, tensor("compressor.wgate"));
        (gate, Describe::own(&role("waiting"), segment).last(d, &[width, width], ratio - 1, false))
    });
    Compressor {
        kv: d.matrix(role("kv"), width, hidden, tensor("compressor.wkv")),
        pooled,
        norm: d.vector(role("norm"), width, tensor("compressor.norm")),
        key: d.matrix(role("key"), key_width, width, tensor("indexer.wk")),
        key_norm: d.vector(role("key_norm"), key_width, tensor("indexer.k_norm")),
    }
}

fn experts(config: &Config) -> ExpertGroup {
    let layer = |index: usize| {
        let view = |name: &str| ExpertView::PerExpert(format!("layers.{index}.ffn.experts.{{expert}}.{name}.weight"));
        ExpertLayer { gate: view("w1"), up: view("w3"), down: view("w2") }
    };
    ExpertGroup {
        role: "experts".into(),
        count: config.routed.experts,
        width: config.hidden,
        hidden: config.routed.hidden,
        activation: Activation::SiluClamp { limit: config.routed.limit },
        weight_before_down: false,
        class: GroupClass::Main,
        layers: (0..config.layers.len()).map(layer).collect(),
    }
}
