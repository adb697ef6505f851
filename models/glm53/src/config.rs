//! `config.json`, its keys checked and typed. Sizes of the language model are in `text_config`.

use std::fmt::Display;

use coli_blocks::keys::{CONTEXT_MAX, COUNT_MAX, Keys, LAYERS_MAX, SIZE_MAX};
use coli_blocks::streams::Streams;
use coli_plugin_api::serde_json::{Value, json};

/// What the pass depends on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    pub hidden: u32,
    pub vocab: u32,
    pub context_max: u32,
    pub norm_eps: f32,
    pub tied_embeddings: bool,
    pub streams: Streams,
    pub delta: Delta,
    pub sparse: Sparse,
    pub index: Index,
    pub routed: Routed,
    pub dense_hidden: u32,
    /// Where gates and values are clamped in MLPs and experts.
    pub limit: f32,
    pub layers: Vec<LayerKind>,
    /// Whether the weights went through a converter: A is the negated rate, and key and value matrices are tensors of their own.
    pub converted: bool,
}

/// What a layer is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LayerKind {
    /// Whether it is a delta rule layer.
    pub delta: bool,
    /// Whether its MLP is routed.
    pub routed: bool,
}

/// Sizes of delta rule layers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Delta {
    pub heads: u32,
    pub head_width: u32,
    pub taps: u32,
    /// The lowest decay.
    pub bound: f32,
}

/// Sizes of layers that attend to chosen latent rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sparse {
    pub heads: u32,
    pub q_rank: u32,
    pub kv_rank: u32,
    pub key_width: u32,
    pub value_width: u32,
}

/// How rows are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Index {
    pub heads: u32,
    pub head_width: u32,
    /// Positions that are chosen.
    pub chosen: u32,
    /// Positions of a pooled key.
    pub pool: u32,
}

/// Sizes of routed MLPs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Routed {
    pub experts: u32,
    pub used: u32,
    pub groups: u32,
    pub groups_kept: u32,
    pub hidden: u32,
    /// Hidden width of the experts that every row passes, together.
    pub shared_hidden: u32,
    pub scale: f32,
}

impl Config {
    /// Reads the keys; an error names the key.
    pub(crate) fn read(json: &Value) -> Result<Self, String> {
        let top = Keys::top(json);
        let keys = top.object_or_self("text_config")?;
        refuse_variants(&keys)?;
        let hidden = keys.size("hidden_size", SIZE_MAX)?;
        // The draft head reads two rows side by side.
        keys.row("hidden_size", &[2, hidden])?;
        let norm_eps = keys.number("rms_norm_eps", 0.0..=1.0)?.unwrap_or(1e-5) as f32;
        let layers = layers(&keys)?;
        let limit = keys.required("swiglu_limit", keys.number("swiglu_limit", 1e-6..=1e6)?)? as f32;
        let context_max = keys.size("max_position_embeddings", CONTEXT_MAX)?;
        let tied = |keys: &Keys<'_>| keys.flag("tie_word_embeddings");
        Ok(Self {
            hidden,
            vocab: keys.size("vocab_size", SIZE_MAX)?,
            context_max,
            norm_eps,
            tied_embeddings: tied(&top)?.or(tied(&keys)?).unwrap_or(false),
            streams: streams(&keys, hidden, norm_eps)?,
            delta: delta(&keys)?,
            sparse: sparse(&keys)?,
            index: index(&keys, context_max)?,
            routed: routed(&keys)?,
            dense_hidden: keys.size("intermediate_size", SIZE_MAX)?,
            limit,
            layers,
            converted: false,
        })
    }
}

/// What the architecture allows and this plugin does not record is an error, not a guess.
fn refuse_variants(keys: &Keys<'_>) -> Result<(), String> {
    keys.only("attention_bias", &json!(false))?;
    keys.only("hidden_act", &json!("silu"))?;
    keys.only("scoring_func", &json!("sigmoid"))?;
    keys.only("topk_method", &json!("noaux_tc"))?;
    keys.only("norm_topk_prob", &json!(true))?;
    keys.only("index_kpool_always_select_tail", &json!(true))?;
    keys.only("index_kpool_compress", &json!(true))?;
    keys.only("mla_use_nope", &json!(true))?;
    keys.only("mhc", &json!(true))?;
    let types = keys.words("indexer_types")?.unwrap_or_default();
    if types.iter().any(|kind| *kind != "full") {
        return Err(keys.bad("indexer_types", "`full` for each layer"));
    }
    if let Some(drafts @ 2..) = keys.whole("num_nextn_predict_layers", 0..=64)? {
        return Err(keys.fault("num_nextn_predict_layers", &format!("{drafts} is not implemented")));
    }
    match keys.whole("qk_rope_head_dim", 0..=COUNT_MAX)? {
        None | Some(0) => Ok(()),
        Some(width) => Err(keys.fault("qk_rope_head_dim", &format!("{width} is not implemented"))),
    }
}

fn streams(keys: &Keys<'_>, hidden: u32, norm_eps: f32) -> Result<Streams, String> {
    let count = keys.size("hc_mult", 64)?;
    keys.row("hc_mult", &[count, hidden])?;
    let eps = keys.number("hc_eps", 0.0..=1.0)?.unwrap_or(1e-6) as f32;
    Ok(Streams { count, width: hidden, norm_eps, eps, iterations: keys.optional_size("hc_sinkhorn_iters", 1000)?.unwrap_or(20) })
}

/// Published files have these sizes in an object of their own, others beside the rest.
fn delta(keys: &Keys<'_>) -> Result<Delta, String> {
    let own = keys.object("linear_attn_config")?;
    let read = |nested: &'static str, flat: &'static str, range: std::ops::RangeInclusive<u64>| {
        one(keys, (nested, flat), own.map_or(Ok(None), |own| own.whole(nested, range.clone()))?, keys.whole(flat, range)?)
    };
    let bound = |keys: &Keys<'_>, key: &str| keys.number(key, -100.0..=-1e-6);
    let nested = own.as_ref().map_or(Ok(None), |own| bound(own, "gate_lower_bound"))?;
    let delta = Delta {
        heads: read("num_heads", "linear_num_heads", 1..=COUNT_MAX)?,
        head_width: read("head_dim", "linear_head_dim", 1..=COUNT_MAX)?,
        taps: read("short_conv_kernel_size", "linear_conv_kernel_dim", 2..=1024)?,
        bound: one(keys, ("gate_lower_bound", "linear_lower_bound"), nested, bound(keys, "linear_lower_bound")?)? as f32,
    };
    let key = if own.is_some() { "linear_attn_config" } else { "linear_head_dim" };
    keys.row(key, &[delta.heads, delta.head_width])?;
    keys.accumulator(key, &[delta.heads, delta.head_width, delta.head_width])?;
    Ok(delta)
}

/// The value of either of two keys; where both are there, they agree.
fn one<T: PartialEq + Display>(keys: &Keys<'_>, (nested, flat): (&str, &str), own: Option<T>, beside: Option<T>) -> Result<T, String> {
    match (own, beside) {
        (Some(own), Some(beside)) if own != beside => {
            Err(keys.fault(flat, &format!("is {beside}, and `{nested}` in `linear_attn_config` is {own}")))
        }
        (own, beside) => keys.required(flat, own.or(beside)),
    }
}

fn sparse(keys: &Keys<'_>) -> Result<Sparse, String> {
    let size = |key: &str| keys.size(key, COUNT_MAX);
    let sparse = Sparse {
        heads: size("num_attention_heads")?,
        q_rank: size("q_lora_rank")?,
        kv_rank: size("kv_lora_rank")?,
        key_width: size("qk_nope_head_dim")?,
        value_width: size("v_head_dim")?,
    };
    let per_head = sparse.kv_rank.max(sparse.key_width + sparse.value_width);
    keys.row("num_attention_heads", &[sparse.heads, per_head])?;
    Ok(sparse)
}

/// A list has room for no more pools than a full context has.
fn index(keys: &Keys<'_>, context_max: u32) -> Result<Index, String> {
    let mut index = Index {
        heads: keys.size("index_n_heads", COUNT_MAX)?,
        head_width: keys.size("index_head_dim", COUNT_MAX)?,
        chosen: keys.size("index_topk", 1 << 20)?,
        // The class's own default.
        pool: keys.optional_size("index_kpool", 4096)?.unwrap_or(16),
    };
    keys.row("index_n_heads", &[index.heads, index.head_width])?;
    if index.pool < 2 || !index.chosen.is_multiple_of(index.pool) {
        return Err(keys.fault("index_kpool", &format!("{} does not divide `index_topk` {} into pools", index.pool, index.chosen)));
    }
    index.chosen = index.chosen.min((context_max / index.pool).max(1) * index.pool);
    Ok(index)
}

fn routed(keys: &Keys<'_>) -> Result<Routed, String> {
    let experts = keys.size("n_routed_experts", COUNT_MAX)?;
    let used = keys.size("num_experts_per_tok", 1024)?;
    let groups = keys.optional_size("n_group", 1024)?.unwrap_or(1);
    let groups_kept = keys.optional_size("topk_group", 1024)?.unwrap_or(groups);
    let hidden = keys.size("moe_intermediate_size", SIZE_MAX)?;
    let shared = keys.optional_size("n_shared_experts", 1024)?.unwrap_or(1);
    keys.row("n_shared_experts", &[shared, hidden])?;
    if !experts.is_multiple_of(groups) || groups_kept > groups {
        return Err(keys.fault("n_group", &format!("{groups}, of which {groups_kept} are kept, of {experts} experts")));
    }
    if groups > 1 && experts / groups < 2 {
        return Err(keys.fault("n_group", &format!("{groups} of {experts} experts, expected 2 or more experts each")));
    }
    if used > experts / groups * groups_kept {
        return Err(keys.fault("num_experts_per_tok", &format!("{used} of {} experts in kept groups", experts / groups * groups_kept)));
    }
    let scale = keys.number("routed_scaling_factor", 0.0..=1e6)?.unwrap_or(1.0) as f32;
    Ok(Routed { experts, used, groups, groups_kept, hidden, shared_hidden: shared * hidden, scale })
}

fn layers(keys: &Keys<'_>) -> Result<Vec<LayerKind>, String> {
    let count = keys.size("num_hidden_layers", LAYERS_MAX)?;
    let delta = list(
        keys,
        "layer_types",
        count,
        &[("linear_attention", true), ("deepseek_sparse_attention", false), ("indexed_attention", false)],
    )?;
    let delta = keys.required("layer_types", delta)?;
    let routed = match list(keys, "mlp_layer_types", count, &[("dense", false), ("sparse", true)])? {
        Some(routed) => routed,
        None => {
            let dense = keys.whole("first_k_dense_replace", 0..=LAYERS_MAX)?.unwrap_or(0);
            (0..count).map(|index| index >= dense).collect()
        }
    };
    Ok(delta.into_iter().zip(routed).map(|(delta, routed)| LayerKind { delta, routed }).collect())
}

/// A word for each layer, by what it means.
fn list(keys: &Keys<'_>, key: &str, count: u32, words: &[(&str, bool)]) -> Result<Option<Vec<bool>>, String> {
    let Some(kinds) = keys.words(key)? else { return Ok(None) };
    if kinds.len() != count as usize {
        return Err(keys.fault(key, &format!("has {} entries, expected `num_hidden_layers` {count}", kinds.len())));
    }
    let meaning = |kind: &&str| {
        let known = words.iter().find(|(word, _)| word == kind).map(|(_, meaning)| *meaning);
        known.ok_or_else(|| keys.fault(key, &format!("`{}` is not implemented", kind.escape_debug())))
    };
    kinds.iter().map(meaning).collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
