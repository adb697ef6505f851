//! Weights, states and experts by the published tensor names.

use coli_plugin_api::describe::{
    Activation, Description, ExpertGroup, ExpertLayer, ExpertView, GroupClass, Keep, RowPart, SegmentName, State, StateKind, View,
    WeightRef,
};
use coli_plugin_api::program::{GroupId, StateId};

use crate::config::Config;

/// The handles that the recording uses.
pub(crate) struct Model {
    pub embed: WeightRef,
    pub layers: Vec<Layer>,
    pub experts: GroupId,
    pub norm: WeightRef,
    pub head: WeightRef,
}

/// One layer's handles.
pub(crate) struct Layer {
    pub attention_norm: WeightRef,
    pub q: WeightRef,
    pub k: WeightRef,
    pub v: WeightRef,
    pub o: WeightRef,
    pub q_norm: WeightRef,
    pub k_norm: WeightRef,
    pub mlp_norm: WeightRef,
    pub router: WeightRef,
    pub kv: StateId,
}

pub(crate) fn describe(config: &Config) -> (Model, Description) {
    let mut d = Description { context_max: config.context_max, vocab: config.vocab, ..Description::default() };
    let embed = d.matrix("embed", config.vocab, config.hidden, View::tensor("model.embed_tokens.weight"));
    let layers = (0..config.layers).map(|index| layer(&mut d, config, index)).collect();
    let experts = d.group(experts(config));
    let norm = d.vector("norm", config.hidden, View::tensor("model.norm.weight"));
    let head = if config.tied_embeddings { "model.embed_tokens.weight" } else { "lm_head.weight" };
    let head = d.matrix("head", config.vocab, config.hidden, View::tensor(head));
    let layer_names = (0..config.layers).map(SegmentName::Layer);
    d.segments = [SegmentName::Embed].into_iter().chain(layer_names).chain([SegmentName::Head]).collect();
    (Model { embed, layers, experts, norm, head }, d)
}

fn layer(d: &mut Description, config: &Config, index: u32) -> Layer {
    let (hidden, q_width, kv_width) = (config.hidden, config.heads * config.head_width, config.kv_heads * config.head_width);
    let tensor = |name: &str| View::tensor(format!("model.layers.{index}.{name}.weight"));
    let role = |name: &str| format!("layer.{index}.{name}");
    let part = RowPart { width: kv_width, may_round: true };
    let kind = StateKind::Rows { parts: vec![part, part], stride: 1, keep: Keep::All };
    Layer {
        attention_norm: d.vector(role("attention_norm"), hidden, tensor("input_layernorm")),
        q: d.matrix(role("q"), q_width, hidden, tensor("self_attn.q_proj")),
        k: d.matrix(role("k"), kv_width, hidden, tensor("self_attn.k_proj")),
        v: d.matrix(role("v"), kv_width, hidden, tensor("self_attn.v_proj")),
        o: d.matrix(role("o"), hidden, q_width, tensor("self_attn.o_proj")),
        q_norm: d.vector(role("q_norm"), q_width, tensor("self_attn.q_norm")),
        k_norm: d.vector(role("k_norm"), kv_width, tensor("self_attn.k_norm")),
        mlp_norm: d.vector(role("mlp_norm"), hidden, tensor("post_attention_layernorm")),
        router: d.matrix(role("router"), config.experts, hidden, tensor("mlp.gate")),
        kv: d.state(State { role: role("kv"), owner: SegmentName::Layer(index), shared: false, kind }),
    }
}

fn experts(config: &Config) -> ExpertGroup {
    let layer = |index: u32| {
        let view = |name: &str| ExpertView::PerExpert(format!("model.layers.{index}.mlp.experts.{{expert}}.{name}_proj.weight"));
        ExpertLayer { gate: view("gate"), up: view("up"), down: view("down") }
    };
    ExpertGroup {
        role: "experts".into(),
        count: config.experts,
        width: config.hidden,
        hidden: config.expert_hidden,
        activation: Activation::Silu,
        weight_before_down: false,
        class: GroupClass::Main,
        layers: (0..config.layers).map(layer).collect(),
    }
}
