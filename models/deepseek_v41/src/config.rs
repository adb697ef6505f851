//! `config.json`, its keys checked and typed. Sizes of the language model are in `text_config`.

use coli_blocks::keys::{CONTEXT_MAX, COUNT_MAX, Keys, LAYERS_MAX, SIZE_MAX};
use coli_blocks::streams::Streams;
use coli_plugin_api::serde_json::{Value, json};

use crate::engram::EngramConfig;

/// Ids of n-grams for each token: what an input of a recording may have.
const IDS_MAX: u64 = 1 << 12;

/// What the pass depends on.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub hidden: u32,
    pub vocab: u32,
    pub context_max: u32,
    pub norm_eps: f32,
    pub streams: Streams,
    pub attention: Attention,
    pub index: Index,
    pub routed: Routed,
    pub layers: Vec<LayerKind>,
    /// The n-gram tables, where there are any, and numbers of a table row.
    pub engram: Option<EngramConfig>,
    pub engram_width: u32,
}

/// Sizes of attention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Attention {
    pub heads: u32,
    pub head_width: u32,
    /// Columns at a head's end that turn.
    pub rotary_width: u32,
    pub q_rank: u32,
    pub o_rank: u32,
    pub o_groups: u32,
    pub window: u32,
    pub theta: f64,
    /// The base of layers that read compressed rows, and how it is stretched.
    pub compressed_theta: f64,
    pub yarn: Yarn,
}

/// How frequencies are stretched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Yarn {
    pub factor: f32,
    pub context: u32,
    pub fast: f32,
    pub slow: f32,
}

/// How compressed rows are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Index {
    pub heads: u32,
    pub head_width: u32,
    pub chosen: u32,
    /// Rows of a candidate block, and blocks that are kept.
    pub block: u32,
    pub blocks: u32,
}

/// Sizes of routed MLPs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Routed {
    pub experts: u32,
    pub used: u32,
    pub hidden: u32,
    pub shared_hidden: u32,
    pub scale: f32,
    /// Where gates and values are clamped.
    pub limit: f32,
}

/// What a layer is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LayerKind {
    /// Its n-gram table, by its place in the list of tables.
    pub table: Option<usize>,
    pub compressed: Option<Compressed>,
}

/// How a layer uses compressed rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Compressed {
    /// Positions of a row.
    pub ratio: u32,
    /// The layer whose rows it reads: itself or an earlier one.
    pub source: u32,
    /// Whether it chooses rows by itself; else the last choice before it holds.
    pub chooses: bool,
    pub candidates: Candidates,
}

/// How a layer that chooses uses candidate blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Candidates {
    No,
    Gives,
    Takes,
}

impl Config {
    /// Reads the keys; an error names the key.
    pub(crate) fn read(json: &Value) -> Result<Self, String> {
        let top = Keys::top(json);
        let keys = top.object_or_self("text_config")?;
        refuse_variants(&top, &keys)?;
        let hidden = keys.size("hidden_size", SIZE_MAX)?;
        let norm_eps = keys.number("rms_norm_eps", 0.0..=1.0)?.unwrap_or(1e-20) as f32;
        let count = keys.size("num_hidden_layers", LAYERS_MAX)?;
        let engram = engram(&top, &keys, count)?;
        let engram_width = keys.optional_size("engram_head_dim", COUNT_MAX)?.unwrap_or(1);
        if let Some(engram) = &engram {
            keys.row("engram_head_dim", &[engram.heads, engram.max_ngram - 1, engram_width])?;
        }
        let tables = engram.as_ref().map_or(&[][..], |engram| &engram.layers);
        let layers = (0..).zip(compressed(&keys, count)?);
        let layers = layers.map(|(index, compressed)| LayerKind { table: tables.iter().position(|layer| *layer == index), compressed });
        Ok(Self {
            hidden,
            vocab: keys.size("vocab_size", SIZE_MAX)?,
            context_max: keys.size("max_position_embeddings", CONTEXT_MAX)?,
            norm_eps,
            streams: streams(&keys, hidden, norm_eps)?,
            attention: attention(&keys)?,
            index: index(&keys)?,
            routed: routed(&keys)?,
            layers: layers.collect(),
            engram,
            engram_width,
        })
    }

    /// Compressed rows of this many positions that are chosen: no more than a full context has.
    pub(crate) fn chosen(&self, ratio: u32) -> u32 {
        self.index.chosen.min(self.rows(ratio))
    }

    /// Rows of a candidate block, and blocks that are kept: no more than a full context has.
    pub(crate) fn candidates(&self, ratio: u32) -> (u32, u32) {
        let rows = self.rows(ratio);
        let block = self.index.block.min(rows);
        (block, self.index.blocks.min(rows.div_ceil(block)))
    }

    fn rows(&self, ratio: u32) -> u32 {
        (self.context_max / ratio).max(1)
    }
}

/// What the architecture allows and this plugin does not record is an error, not a guess.
fn refuse_variants(top: &Keys<'_>, keys: &Keys<'_>) -> Result<(), String> {
    keys.only("attention_bias", &json!(false))?;
    keys.only("hidden_act", &json!("silu"))?;
    keys.only("scoring_func", &json!("sqrtsoftplus"))?;
    keys.only("topk_method", &json!("noaux_tc"))?;
    keys.only("norm_topk_prob", &json!(true))?;
    keys.only("n_group", &json!(1))?;
    keys.only("topk_group", &json!(1))?;
    keys.only("num_key_value_heads", &json!(1))?;
    top.only("tie_word_embeddings", &json!(false))?;
    keys.only("tie_word_embeddings", &json!(false))
}

fn engram(top: &Keys<'_>, keys: &Keys<'_>, count: u32) -> Result<Option<EngramConfig>, String> {
    let layers = keys.wholes("engram_layer_ids", 0..=LAYERS_MAX)?.unwrap_or_default();
    if layers.is_empty() {
        return Ok(None);
    }
    if layers.iter().enumerate().any(|(index, layer)| layers[..index].contains(layer)) {
        return Err(keys.bad("engram_layer_ids", "each layer once"));
    }
    within(keys, "engram_layer_ids", &layers, count)?;
    let max_ngram = keys.required("engram_max_ngram_size", keys.whole("engram_max_ngram_size", 2..=64)?)?;
    let heads = keys.size("engram_n_heads", 1024)?;
    keys.product("engram_n_heads", "lists", &[max_ngram - 1, heads], IDS_MAX)?;
    let image = |keys: &Keys<'_>| keys.whole("image_token_id", 0..=SIZE_MAX);
    Ok(Some(EngramConfig {
        layers,
        max_ngram,
        vocab: keys.size("engram_vocab_size", u32::MAX.into())?.into(),
        heads,
        pad_token: keys.required("engram_pad_token_id", keys.whole("engram_pad_token_id", 0..=SIZE_MAX)?)?,
        compressed_vocab: keys.size("engram_compressed_vocab_size", SIZE_MAX)?.into(),
        image_token: image(top)?.or(image(keys)?),
    }))
}

/// An error where a list names a layer from `end` on.
fn within(keys: &Keys<'_>, key: &str, layers: &[u32], end: u32) -> Result<(), String> {
    let beyond = layers.iter().find(|layer| **layer >= end);
    beyond.map_or(Ok(()), |layer| Err(keys.fault(key, &format!("names layer {layer}, and there are {end}"))))
}

fn streams(keys: &Keys<'_>, hidden: u32, norm_eps: f32) -> Result<Streams, String> {
    let count = keys.size("hc_mult", 64)?;
    // The n-gram keys stand beside a value.
    keys.row("hc_mult", &[count + 1, hidden])?;
    let eps = keys.number("hc_eps", 0.0..=1.0)?.unwrap_or(1e-6) as f32;
    Ok(Streams { count, width: hidden, norm_eps, eps, iterations: keys.optional_size("hc_sinkhorn_iters", 1000)?.unwrap_or(20) })
}

fn attention(keys: &Keys<'_>) -> Result<Attention, String> {
    let size = |key: &str| keys.size(key, COUNT_MAX);
    let theta = |key: &str, least: f64| keys.required(key, keys.number(key, least..=1e12)?);
    let attention = Attention {
        heads: size("num_attention_heads")?,
        head_width: size("head_dim")?,
        rotary_width: size("qk_rope_head_dim")?,
        q_rank: size("q_lora_rank")?,
        o_rank: size("o_lora_rank")?,
        o_groups: size("o_groups")?,
        window: keys.required("sliding_window", keys.whole("sliding_window", 2..=CONTEXT_MAX)?)?,
        theta: theta("rope_theta", 1.0)?,
        compressed_theta: theta("compress_rope_theta", 1.001)?,
        yarn: yarn(keys)?,
    };
    keys.row("head_dim", &[attention.heads, attention.head_width])?;
    keys.row("o_lora_rank", &[attention.o_groups, attention.o_rank])?;
    if !attention.rotary_width.is_multiple_of(2) || attention.rotary_width > attention.head_width {
        return Err(keys.bad("qk_rope_head_dim", "an even number within `head_dim`"));
    }
    if !attention.heads.is_multiple_of(attention.o_groups) {
        return Err(keys.fault("o_groups", &format!("{} does not divide {} heads", attention.o_groups, attention.heads)));
    }
    Ok(attention)
}

fn yarn(keys: &Keys<'_>) -> Result<Yarn, String> {
    let scaling = keys.required("rope_scaling", keys.object("rope_scaling")?)?;
    scaling.only("rope_type", &json!("yarn"))?;
    scaling.only("type", &json!("yarn"))?;
    let number = |key: &str, other: f64| scaling.number(key, 1e-3..=1e6).map(|found| found.unwrap_or(other) as f32);
    let factor = scaling.required("factor", scaling.number("factor", 1.0..=1e6)?)? as f32;
    let context = scaling.size("original_max_position_embeddings", CONTEXT_MAX)?;
    let (fast, slow) = (number("beta_fast", 32.0)?, number("beta_slow", 1.0)?);
    if fast < slow {
        return Err(scaling.fault("beta_fast", &format!("is {fast}, below `beta_slow` {slow}")));
    }
    Ok(Yarn { factor, context, fast, slow })
}

fn index(keys: &Keys<'_>) -> Result<Index, String> {
    let index = Index {
        heads: keys.size("index_n_heads", COUNT_MAX)?,
        head_width: keys.size("index_head_dim", COUNT_MAX)?,
        chosen: keys.size("index_topk", 1 << 20)?,
        block: keys.optional_size("candidate_block_size", 1 << 20)?.unwrap_or(8),
        blocks: keys.optional_size("candidate_topk_blocks", 1 << 20)?.unwrap_or(2048),
    };
    keys.row("index_n_heads", &[index.heads, index.head_width])?;
    let rotary = keys.size("qk_rope_head_dim", COUNT_MAX)?;
    if rotary > index.head_width { Err(keys.bad("index_head_dim", "at least `qk_rope_head_dim`")) } else { Ok(index) }
}

fn routed(keys: &Keys<'_>) -> Result<Routed, String> {
    let experts = keys.size("n_routed_experts", COUNT_MAX)?;
    let used = keys.size("num_experts_per_tok", 1024)?;
    if used > experts {
        return Err(keys.fault("num_experts_per_tok", &format!("{used} of `n_routed_experts` {experts}")));
    }
    let hidden = keys.size("moe_intermediate_size", SIZE_MAX)?;
    let shared = keys.optional_size("n_shared_experts", 1024)?.unwrap_or(1);
    keys.row("n_shared_experts", &[shared, hidden])?;
    Ok(Routed {
        experts,
        used,
        hidden,
        shared_hidden: shared * hidden,
        scale: keys.number("routed_scaling_factor", 0.0..=1e6)?.unwrap_or(1.0) as f32,
        limit: keys.required("swiglu_limit", keys.number("swiglu_limit", 1e-6..=1e6)?)? as f32,
    })
}

fn compressed(keys: &Keys<'_>, count: u32) -> Result<Vec<Option<Compressed>>, String> {
    let ratios = keys.required("compress_ratios", keys.wholes("compress_ratios", 0..=4096)?)?;
    // Draft layers follow the model's own.
    if ratios.len() < count as usize {
        return Err(keys.fault("compress_ratios", &format!("has {} entries for {count} layers", ratios.len())));
    }
    let all = count + keys.whole("num_nextn_predict_layers", 0..=LAYERS_MAX)?.unwrap_or(0);
    let ids = |key: &str| {
        let layers = keys.wholes(key, 0..=LAYERS_MAX)?.unwrap_or_default();
        within(keys, key, &layers, all)?;
        match layers.iter().find(|layer| ratios.get(**layer as usize) == Some(&0)) {
            Some(layer) => Err(keys.fault(key, &format!("names layer {layer}, which has no compressed rows"))),
            None => Ok(layers),
        }
    };
    let (sources, choosers) = (ids("kv_source_layer_ids")?, ids("index_source_layer_ids")?);
    let candidates = keys.whole("candidate_source_layer_id", 0..=LAYERS_MAX)?;
    if candidates.is_some_and(|giver| !choosers.contains(&giver)) {
        return Err(keys.bad("candidate_source_layer_id", "one of `index_source_layer_ids`"));
    }
    let mut source = None;
    let mut chosen = false;
    let mut layers = vec![];
    for (index, ratio) in (0..count).zip(ratios.iter().copied()) {
        if ratio == 0 {
            layers.push(None);
            continue;
        }
        if sources.contains(&index) {
            (source, chosen) = (Some((index, ratio)), false);
        }
        let (from, stride) = source.ok_or_else(|| keys.fault("kv_source_layer_ids", &format!("names no layer up to {index}")))?;
        if stride != ratio {
            return Err(keys.fault("compress_ratios", &format!("layer {index} has {ratio}, its rows come from layer {from} with {stride}")));
        }
        let chooses = choosers.contains(&index);
        if !chooses && !chosen {
            return Err(keys.fault("index_source_layer_ids", &format!("names no layer from {from} to {index}")));
        }
        chosen = true;
        let use_of = match candidates {
            Some(giver) if chooses && index == giver => Candidates::Gives,
            // Blocks are of the rows that the giver read, so no new rows may begin in between.
            Some(giver) if chooses && index > giver && from <= giver => Candidates::Takes,
            _ => Candidates::No,
        };
        layers.push(Some(Compressed { ratio, source: from, chooses, candidates: use_of }));
    }
    Ok(layers)
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
