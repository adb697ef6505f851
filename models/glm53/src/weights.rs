//! Weights, states and experts by the published tensor names.

use coli_blocks::mlp::Mlp;
use coli_blocks::states::Describe;
use coli_blocks::streams::Site;
use coli_plugin_api::describe::{Activation, Description, ExpertGroup, ExpertLayer, ExpertView, GroupClass, SegmentName, View, WeightRef};
use coli_plugin_api::program::{GroupId, StateId};

use crate::config::{Config, LayerKind};
use crate::gguf;

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
    pub mixer_site: Site,
    pub mixer_norm: WeightRef,
    pub mixer: Mixer,
    pub mlp_site: Site,
    pub mlp_norm: WeightRef,
    pub feed: Feed,
}

/// The draft head's handles: a block with a plain residual.
pub(crate) struct Draft {
    pub embed_norm: WeightRef,
    pub hidden_norm: WeightRef,
    pub joint: WeightRef,
    pub mixer_norm: WeightRef,
    pub mixer: Sparse,
    pub mlp_norm: WeightRef,
    pub feed: Feed,
    pub norm: WeightRef,
}

/// What mixes rows.
pub(crate) enum Mixer {
    Delta(Delta),
    Sparse(Sparse),
}

pub(crate) struct Delta {
    /// q, k and v: a matrix, a convolution and its window each.
    pub qkv: [(WeightRef, WeightRef, StateId); 3],
    /// Two matrices, one after the other.
    pub decay: [WeightRef; 2],
    pub beta: WeightRef,
    pub a: WeightRef,
    pub dt: WeightRef,
    pub state: StateId,
    pub norm: WeightRef,
    /// Two matrices, one after the other.
    pub gate: [WeightRef; 2],
    pub o: WeightRef,
}

pub(crate) struct Sparse {
    pub q_down: WeightRef,
    pub q_norm: WeightRef,
    pub q_up: WeightRef,
    pub kv_down: WeightRef,
    pub kv_norm: WeightRef,
    /// From latent rows to keys, a matrix for each head.
    pub k_up: WeightRef,
    /// From latent rows to values, likewise.
    pub v_up: WeightRef,
    pub o: WeightRef,
    pub latent: StateId,
    pub index: Index,
}

/// What chooses rows.
pub(crate) struct Index {
    pub q: WeightRef,
    pub head_weights: WeightRef,
    pub k: WeightRef,
    pub k_norm: WeightRef,
    pub k_bias: WeightRef,
    pub pool_gate: WeightRef,
    pub pool_ape: WeightRef,
    /// The keys of a pool that is not complete.
    pub window: StateId,
    pub keys: StateId,
}

/// What follows.
pub(crate) enum Feed {
    Dense(Mlp),
    Routed { router: WeightRef, bias: WeightRef, group: GroupId, layer: u32, shared: Mlp },
}

const PREFIX: &str = "model.language_model";

pub(crate) fn describe(config: &Config, stored: impl Fn(&str) -> bool) -> (Model, Description) {
    let mut d = Description { context_max: config.context_max, vocab: config.vocab, ..Description::default() };
    let tensor = |name: &str| View::tensor(format!("{PREFIX}.{name}.weight"));
    let embed = d.matrix("embed", config.vocab, config.hidden, tensor("embed_tokens"));
    let norm = d.vector("norm", config.hidden, tensor("norm"));
    let head = if config.tied_embeddings { tensor("embed_tokens") } else { View::tensor("lm_head.weight") };
    let head = d.matrix("head", config.vocab, config.hidden, head);
    let mut experts = Experts { group: GroupId(0), layers: vec![] };
    let kinds = (0..).zip(&config.layers);
    let layers = kinds.map(|(index, kind)| layer(&mut d, config, &mut experts, index, *kind)).collect();
    experts.end(&mut d, config, "experts", GroupClass::Main);
    // The draft head is stored as one more layer.
    let prefix = format!("{PREFIX}.layers.{}", config.layers.len());
    let draft = stored(&format!("{prefix}.eh_proj.weight")).then(|| draft(&mut d, config, &mut experts, &prefix));
    let names = (0..config.layers.len() as u32).map(SegmentName::Layer);
    let drafts = draft.is_some().then_some(SegmentName::Draft(0));
    d.segments = [SegmentName::Embed].into_iter().chain(names).chain([SegmentName::Head]).chain(drafts).collect();
    (Model { embed, layers, norm, head, draft }, d)
}

/// The layers of a group that is being described.
struct Experts {
    group: GroupId,
    layers: Vec<ExpertLayer>,
}

impl Experts {
    /// Describes the group of the layers since the last one.
    fn end(&mut self, d: &mut Description, config: &Config, role: &str, class: GroupClass) {
        if self.layers.is_empty() {
            return;
        }
        let GroupId(id) = d.group(ExpertGroup {
            role: role.into(),
            count: config.routed.experts,
            width: config.hidden,
            hidden: config.routed.hidden,
            activation: Activation::SiluClamp { limit: config.limit },
            weight_before_down: false,
            class,
            layers: std::mem::take(&mut self.layers),
        });
        self.group = GroupId(id + 1);
    }
}

fn draft(d: &mut Description, config: &Config, experts: &mut Experts, prefix: &str) -> Draft {
    let segment = SegmentName::Draft(0);
    let norm = |d: &mut Description, what: &str, name: &str| {
        d.vector(format!("{segment}.{what}"), config.hidden, View::tensor(format!("{prefix}.{name}.weight")))
    };
    let joint = View::tensor(format!("{prefix}.eh_proj.weight"));
    let draft = Draft {
        embed_norm: norm(d, "embed_norm", "enorm"),
        hidden_norm: norm(d, "hidden_norm", "hnorm"),
        joint: d.matrix(format!("{segment}.joint"), config.hidden, 2 * config.hidden, joint),
        mixer_norm: norm(d, "mixer_norm", "input_layernorm"),
        mixer: sparse(d, config, segment, &format!("{prefix}.self_attn")),
        mlp_norm: norm(d, "mlp_norm", "post_attention_layernorm"),
        feed: feed(d, config, experts, segment, &format!("{prefix}.mlp"), true),
        norm: norm(d, "norm", "shared_head.norm"),
    };
    experts.end(d, config, "draft experts", GroupClass::Extra);
    draft
}

fn layer(d: &mut Description, config: &Config, experts: &mut Experts, index: u32, kind: LayerKind) -> Layer {
    let segment = SegmentName::Layer(index);
    let prefix = format!("{PREFIX}.layers.{index}");
    let norm = |d: &mut Description, what: &str, name: &str| {
        d.vector(format!("{segment}.{what}"), config.hidden, View::tensor(format!("{prefix}.{name}.weight")))
    };
    let site = |d: &mut Description, what: &str, name: &str| {
        Site::describe(d, &format!("{segment}.{what}"), &config.streams, &format!("{prefix}.{name}"))
    };
    Layer {
        mixer_site: site(d, "mixer_site", "hc_attn"),
        mixer_norm: norm(d, "mixer_norm", "input_layernorm"),
        mixer: match kind.delta {
            true => Mixer::Delta(delta(d, config, segment, &format!("{prefix}.self_attn"))),
            false => Mixer::Sparse(sparse(d, config, segment, &format!("{prefix}.self_attn"))),
        },
        mlp_site: site(d, "mlp_site", "hc_ffn"),
        mlp_norm: norm(d, "mlp_norm", "post_attention_layernorm"),
        feed: feed(d, config, experts, segment, &format!("{prefix}.mlp"), kind.routed),
    }
}

fn delta(d: &mut Description, config: &Config, segment: SegmentName, prefix: &str) -> Delta {
    let (hidden, sizes) = (config.hidden, config.delta);
    let (heads, width) = (sizes.heads, sizes.heads * sizes.head_width);
    let tensor = |name: &str| View::tensor(format!("{prefix}.{name}"));
    let role = |name: &str| format!("{segment}.{name}");
    let mut part = |name: &str| {
        let matrix = d.matrix(role(name), width, hidden, tensor(&format!("{name}_proj.weight")));
        let conv = d.matrix(role(&format!("{name}_conv")), width, sizes.taps, tensor(&format!("{name}_conv1d.weight")));
        let window = Describe::own(&role(&format!("{name}_window")), segment).last(d, &[width], sizes.taps - 1, false);
        (matrix, conv, window)
    };
    let qkv = ["q", "k", "v"].map(&mut part);
    // Both pass through a row of one head's width.
    let mut pair = |name: &str| {
        let down = d.matrix(role(&format!("{name}_a")), sizes.head_width, hidden, tensor(&format!("{name}_a_proj.weight")));
        [down, d.matrix(role(&format!("{name}_b")), width, sizes.head_width, tensor(&format!("{name}_b_proj.weight")))]
    };
    let (decay, gate) = (pair("f"), pair("g"));
    Delta {
        qkv,
        decay,
        beta: d.matrix(role("beta"), heads, hidden, tensor("b_proj.weight")),
        a: d.vector(role("a"), heads, tensor("A_log")),
        dt: d.vector(role("dt"), width, tensor("dt_bias")),
        state: Describe::own(&role("state"), segment).accumulator(d, &[heads, sizes.head_width, sizes.head_width]),
        norm: d.vector(role("norm"), sizes.head_width, tensor("o_norm.weight")),
        gate,
        o: d.matrix(role("o"), hidden, width, tensor("o_proj.weight")),
    }
}

fn sparse(d: &mut Description, config: &Config, segment: SegmentName, prefix: &str) -> Sparse {
    let (hidden, sizes) = (config.hidden, config.sparse);
    let tensor = |name: &str| View::tensor(format!("{prefix}.{name}.weight"));
    let role = |name: &str| format!("{segment}.{name}");
    let (keys, values) = (sizes.key_width, sizes.value_width);
    // Each head has its rows for keys, then those for values; or there are two tensors, and the matrices for keys are transposed.
    let part = |start: u32, rows: u32| tensor("kv_b_proj").blocks(start, rows, sizes.heads, keys + values);
    let layer = prefix.strip_suffix("self_attn").unwrap_or(prefix);
    let own = |name: &str| View::tensor(format!("{layer}{name}")).stacked();
    let (k_up, v_up) = match config.converted {
        true => (d.matrix(role("k_up"), sizes.heads * sizes.kv_rank, keys, own(gguf::KEYS_UP)), own(gguf::VALUES_UP)),
        false => (d.matrix(role("k_up"), sizes.heads * keys, sizes.kv_rank, part(0, keys)), part(keys, values)),
    };
    Sparse {
        q_down: d.matrix(role("q_down"), sizes.q_rank, hidden, tensor("q_a_proj")),
        q_norm: d.vector(role("q_norm"), sizes.q_rank, tensor("q_a_layernorm")),
        q_up: d.matrix(role("q_up"), sizes.heads * keys, sizes.q_rank, tensor("q_b_proj")),
        kv_down: d.matrix(role("kv_down"), sizes.kv_rank, hidden, tensor("kv_a_proj_with_mqa")),
        kv_norm: d.vector(role("kv_norm"), sizes.kv_rank, tensor("kv_a_layernorm")),
        k_up,
        v_up: d.matrix(role("v_up"), sizes.heads * values, sizes.kv_rank, v_up),
        o: d.matrix(role("o"), hidden, sizes.heads * values, tensor("o_proj")),
        latent: Describe::own(&role("latent"), segment).rows(d, &[sizes.kv_rank], 1),
        index: index(d, config, segment, &format!("{prefix}.indexer")),
    }
}

fn index(d: &mut Description, config: &Config, segment: SegmentName, prefix: &str) -> Index {
    let (hidden, sizes) = (config.hidden, config.index);
    let tensor = |name: &str| View::tensor(format!("{prefix}.{name}"));
    let role = |name: &str| format!("{segment}.index.{name}");
    let width = sizes.head_width;
    Index {
        q: d.matrix(role("q"), sizes.heads * width, config.sparse.q_rank, tensor("wq_b.weight")),
        head_weights: d.matrix(role("head_weights"), sizes.heads, hidden, tensor("weights_proj.weight")),
        k: d.matrix(role("k"), width, hidden, tensor("wk.weight")),
        k_norm: d.vector(role("k_norm"), width, tensor("k_norm.weight")),
        k_bias: d.vector(role("k_bias"), width, tensor("k_norm.bias")),
        pool_gate: d.matrix(role("pool_gate"), width, hidden, tensor("index_kpool_compress_gate")),
        pool_ape: d.matrix(role("pool_ape"), sizes.pool, width, tensor("index_kpool_compress_ape")),
        window: Describe::own(&role("window"), segment).last(d, &[width, width], sizes.pool - 1, false),
        keys: Describe::own(&role("keys"), segment).rows(d, &[width], sizes.pool),
    }
}

fn feed(d: &mut Description, config: &Config, experts: &mut Experts, segment: SegmentName, prefix: &str, routed: bool) -> Feed {
    let mut mlp = |role: &str, hidden: u32, prefix: &str| {
        let stored = ["gate", "up", "down"].map(|name| format!("{prefix}.{name}_proj.weight"));
        Mlp::describe(d, &format!("{segment}.{role}"), config.hidden, hidden, stored)
    };
    if !routed {
        return Feed::Dense(mlp("mlp", config.dense_hidden, prefix));
    }
    let shared = mlp("shared", config.routed.shared_hidden, &format!("{prefix}.shared_experts"));
    let view = |name: &str| ExpertView::PerExpert(format!("{prefix}.experts.{{expert}}.{name}_proj.weight"));
    experts.layers.push(ExpertLayer { gate: view("gate"), up: view("up"), down: view("down") });
    let tensor = |name: &str| View::tensor(format!("{prefix}.gate.{name}"));
    Feed::Routed {
        router: d.matrix(format!("{segment}.router"), config.routed.experts, config.hidden, tensor("weight")),
        bias: d.vector(format!("{segment}.router_bias"), config.routed.experts, tensor("e_score_correction_bias")),
        group: experts.group,
        layer: experts.layers.len() as u32 - 1,
        shared,
    }
}
