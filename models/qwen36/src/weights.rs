//! Weights, states and experts by the published tensor names.

use coli_blocks::mlp::Mlp;
use coli_blocks::states::Describe;
use coli_plugin_api::describe::{Activation, Description, ExpertGroup, ExpertLayer, ExpertView, GroupClass, SegmentName, View, WeightRef};
use coli_plugin_api::program::{GroupId, StateId};

use crate::config::{Config, LayerKind, Linear, Routed};

/// The handles that the recording uses.
pub(crate) struct Model {
    pub embed: WeightRef,
    pub layers: Vec<Layer>,
    pub norm: WeightRef,
    pub head: WeightRef,
    pub draft: Option<Draft>,
}

/// One layer's handles.
pub(crate) struct Layer {
    pub mixer_norm: WeightRef,
    pub mixer: Mixer,
    pub mlp_norm: WeightRef,
    pub feed: Feed,
}

/// What mixes rows.
pub(crate) enum Mixer {
    Attention(Attention),
    Delta(Delta),
}

pub(crate) struct Attention {
    pub q: WeightRef,
    /// Multiplies what a head gives.
    pub gate: Option<WeightRef>,
    pub k: WeightRef,
    pub v: WeightRef,
    pub o: WeightRef,
    pub q_norm: WeightRef,
    pub k_norm: WeightRef,
    pub kv: StateId,
}

pub(crate) struct Delta {
    /// q, k and v one after the other.
    pub qkv: WeightRef,
    pub conv: WeightRef,
    pub z: WeightRef,
    pub beta: WeightRef,
    pub decay: WeightRef,
    pub a: WeightRef,
    pub dt: WeightRef,
    pub norm: WeightRef,
    pub o: WeightRef,
    pub window: StateId,
    pub state: StateId,
}

/// What follows.
pub(crate) enum Feed {
    Dense(Mlp),
    Routed { router: WeightRef, group: GroupId, layer: u32, shared: Option<Shared> },
}

/// The expert that every row passes, and its gate of one number.
pub(crate) struct Shared {
    pub mlp: Mlp,
    pub gate: WeightRef,
}

/// The draft head's handles.
pub(crate) struct Draft {
    pub embed_norm: WeightRef,
    pub hidden_norm: WeightRef,
    pub joint: WeightRef,
    pub layer: Layer,
    pub norm: WeightRef,
}

pub(crate) fn describe(config: &Config, stored: impl Fn(&str) -> bool) -> (Model, Description) {
    let prefix = if config.newer { "model.language_model" } else { "model" };
    let mut d = Description { context_max: config.context_max, vocab: config.vocab, ..Description::default() };
    let tensor = |name: &str| View::tensor(format!("{prefix}.{name}.weight"));
    let embed = d.matrix("embed", config.vocab, config.hidden, tensor("embed_tokens"));
    let norm = d.vector("norm", config.hidden, tensor("norm"));
    let head = if config.tied_embeddings { tensor("embed_tokens") } else { View::tensor("lm_head.weight") };
    let head = d.matrix("head", config.vocab, config.hidden, head);
    let mut describer = Describer { d, config, experts: vec![], group: GroupId(0), stored: &stored };
    let kinds = (0..).zip(&config.layers);
    let layers = kinds.map(|(index, kind)| describer.layer(SegmentName::Layer(index), &format!("{prefix}.layers.{index}"), *kind));
    let layers = layers.collect();
    describer.end_group("experts", GroupClass::Main);
    let draft = (config.newer && stored("mtp.fc.weight")).then(|| describer.draft());
    let mut d = describer.d;
    let names = (0..config.layers.len() as u32).map(SegmentName::Layer);
    let drafts = draft.is_some().then_some(SegmentName::Draft(0));
    d.segments = [SegmentName::Embed].into_iter().chain(names).chain([SegmentName::Head]).chain(drafts).collect();
    (Model { embed, layers, norm, head, draft }, d)
}

struct Describer<'a> {
    d: Description,
    config: &'a Config,
    /// Layers of the group that is being described, and its id.
    experts: Vec<ExpertLayer>,
    group: GroupId,
    stored: &'a dyn Fn(&str) -> bool,
}

impl Describer<'_> {
    /// A layer whose tensors begin with `prefix`.
    fn layer(&mut self, segment: SegmentName, prefix: &str, kind: LayerKind) -> Layer {
        let hidden = self.config.hidden;
        let norm = |d: &mut Description, what: &str, name: &str| {
            d.vector(format!("{segment}.{what}"), hidden, View::tensor(format!("{prefix}.{name}.weight")))
        };
        let mixer_norm = norm(&mut self.d, "mixer_norm", "input_layernorm");
        let mlp_norm = norm(&mut self.d, "mlp_norm", "post_attention_layernorm");
        let mixer = match self.config.linear.filter(|_| kind.linear) {
            Some(linear) => Mixer::Delta(self.delta(segment, &format!("{prefix}.linear_attn"), &linear)),
            None => Mixer::Attention(self.attention(segment, &format!("{prefix}.self_attn"))),
        };
        let feed = match self.config.routed.filter(|_| kind.routed) {
            Some(routed) => self.routed(segment, &format!("{prefix}.mlp"), &routed),
            None => Feed::Dense(self.mlp(&format!("{segment}.mlp"), self.config.dense_hidden, &format!("{prefix}.mlp"))),
        };
        Layer { mixer_norm, mixer, mlp_norm, feed }
    }

    fn attention(&mut self, segment: SegmentName, prefix: &str) -> Attention {
        let (hidden, attention) = (self.config.hidden, self.config.attention);
        let (heads, width) = (attention.heads, attention.head_width);
        let (q_width, kv_width) = (heads * width, attention.kv_heads * width);
        let tensor = |name: &str| View::tensor(format!("{prefix}.{name}.weight"));
        let role = |name: &str| format!("{segment}.{name}");
        let d = &mut self.d;
        // Each head has its rows of q, then those of its gate.
        let half = |start: u32| tensor("q_proj").blocks(start, width, heads, 2 * width);
        let newer = self.config.newer;
        Attention {
            q: d.matrix(role("q"), q_width, hidden, if newer { half(0) } else { tensor("q_proj") }),
            gate: newer.then(|| d.matrix(role("gate"), q_width, hidden, half(width))),
            k: d.matrix(role("k"), kv_width, hidden, tensor("k_proj")),
            v: d.matrix(role("v"), kv_width, hidden, tensor("v_proj")),
            o: d.matrix(role("o"), hidden, q_width, tensor("o_proj")),
            q_norm: d.vector(role("q_norm"), width, tensor("q_norm")),
            k_norm: d.vector(role("k_norm"), width, tensor("k_norm")),
            kv: Describe::own(&role("kv"), segment).rows(d, &[kv_width, kv_width], 1),
        }
    }

    fn delta(&mut self, segment: SegmentName, prefix: &str, linear: &Linear) -> Delta {
        let (hidden, heads, values) = (self.config.hidden, linear.value_heads, linear.values());
        let channels = 2 * linear.keys() + values;
        let tensor = |name: &str| View::tensor(format!("{prefix}.{name}"));
        let role = |name: &str| format!("{segment}.{name}");
        let d = &mut self.d;
        Delta {
            qkv: d.matrix(role("qkv"), channels, hidden, tensor("in_proj_qkv.weight")),
            conv: d.matrix(role("conv"), channels, linear.taps, tensor("conv1d.weight")),
            z: d.matrix(role("z"), values, hidden, tensor("in_proj_z.weight")),
            beta: d.matrix(role("beta"), heads, hidden, tensor("in_proj_b.weight")),
            decay: d.matrix(role("decay"), heads, hidden, tensor("in_proj_a.weight")),
            a: d.vector(role("a"), heads, tensor("A_log")),
            dt: d.vector(role("dt"), heads, tensor("dt_bias")),
            norm: d.vector(role("norm"), linear.value_width, tensor("norm.weight")),
            o: d.matrix(role("o"), hidden, values, tensor("out_proj.weight")),
            window: Describe::own(&role("window"), segment).last(d, &[channels], linear.taps - 1, false),
            state: Describe::own(&role("state"), segment).accumulator(d, &[heads, linear.key_width, linear.value_width]),
        }
    }

    fn routed(&mut self, segment: SegmentName, prefix: &str, routed: &Routed) -> Feed {
        let hidden = self.config.hidden;
        let tensor = |name: &str| View::tensor(format!("{prefix}.{name}.weight"));
        let router = self.d.matrix(format!("{segment}.router"), routed.experts, hidden, tensor("gate"));
        let shared = routed.shared_hidden.map(|width| Shared {
            mlp: self.mlp(&format!("{segment}.shared"), width, &format!("{prefix}.shared_expert")),
            gate: self.d.matrix(format!("{segment}.shared_gate"), 1, hidden, tensor("shared_expert_gate")),
        });
        let layer = self.experts.len() as u32;
        let experts = self.expert_layer(&format!("{prefix}.experts"), routed.hidden);
        self.experts.push(experts);
        Feed::Routed { router, group: self.group, layer, shared }
    }

    /// Releases hold the experts of a layer in two tensors or in three for each.
    fn expert_layer(&self, prefix: &str, hidden: u32) -> ExpertLayer {
        let both = format!("{prefix}.gate_up_proj");
        if (self.stored)(&both) {
            let fused = |tensor: &str, start: u32| ExpertView::Fused { tensor: tensor.into(), start };
            return ExpertLayer { gate: fused(&both, 0), up: fused(&both, hidden), down: fused(&format!("{prefix}.down_proj"), 0) };
        }
        let each = |name: &str| ExpertView::PerExpert(format!("{prefix}.{{expert}}.{name}_proj.weight"));
        ExpertLayer { gate: each("gate"), up: each("up"), down: each("down") }
    }

    fn mlp(&mut self, role: &str, hidden: u32, prefix: &str) -> Mlp {
        let stored = ["gate", "up", "down"].map(|name| format!("{prefix}.{name}_proj.weight"));
        Mlp::describe(&mut self.d, role, self.config.hidden, hidden, stored)
    }

    /// Describes the group of the layers since the last one.
    fn end_group(&mut self, role: &str, class: GroupClass) {
        let Some(routed) = self.config.routed.filter(|_| !self.experts.is_empty()) else { return };
        let group = ExpertGroup {
            role: role.into(),
            count: routed.experts,
            width: self.config.hidden,
            hidden: routed.hidden,
            activation: Activation::Silu,
            weight_before_down: false,
            class,
            layers: std::mem::take(&mut self.experts),
        };
        let GroupId(id) = self.d.group(group);
        self.group = GroupId(id + 1);
    }

    fn draft(&mut self) -> Draft {
        let hidden = self.config.hidden;
        let segment = SegmentName::Draft(0);
        let vector = |d: &mut Description, role: &str, name: &str| {
            d.vector(format!("{segment}.{role}"), hidden, View::tensor(format!("mtp.{name}.weight")))
        };
        let embed_norm = vector(&mut self.d, "embed_norm", "pre_fc_norm_embedding");
        let hidden_norm = vector(&mut self.d, "hidden_norm", "pre_fc_norm_hidden");
        let norm = vector(&mut self.d, "norm", "norm");
        let joint = self.d.matrix(format!("{segment}.joint"), hidden, 2 * hidden, View::tensor("mtp.fc.weight"));
        let kind = LayerKind { linear: false, routed: self.config.routed.is_some() };
        let layer = self.layer(segment, "mtp.layers.0", kind);
        self.end_group("draft experts", GroupClass::Extra);
        Draft { embed_norm, hidden_norm, joint, layer, norm }
    }
}
