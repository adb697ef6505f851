//! `config.json`, its keys checked and typed.

use coli_blocks::keys::{CONTEXT_MAX, COUNT_MAX, Keys, LAYERS_MAX, SIZE_MAX};
use coli_plugin_api::serde_json::{Value, json};

/// What the pass depends on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    pub hidden: u32,
    pub vocab: u32,
    pub context_max: u32,
    pub norm_eps: f32,
    pub tied_embeddings: bool,
    pub attention: Attention,
    /// Sizes of delta rule layers, where there are any.
    pub linear: Option<Linear>,
    /// Sizes of routed MLPs, where there are any.
    pub routed: Option<Routed>,
    /// Hidden width of dense MLPs.
    pub dense_hidden: u32,
    pub layers: Vec<LayerKind>,
    /// Whether this is a Qwen3.5 or 3.6: weights of norms are distances from 1, attention has a gate, tensors lie under
    /// `model.language_model`.
    pub newer: bool,
    /// Whether the weights went through a converter: norms have their 1, A is the negated rate, value heads are tiled.
    pub converted: bool,
}

/// What a layer is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LayerKind {
    /// Whether it is a delta rule layer.
    pub linear: bool,
    /// Whether its MLP is routed.
    pub routed: bool,
}

/// Sizes of attention layers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Attention {
    pub heads: u32,
    pub kv_heads: u32,
    pub head_width: u32,
    /// Columns of a head that turn.
    pub rotary_width: u32,
    pub rope_theta: f64,
}

/// Sizes of delta rule layers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Linear {
    pub key_heads: u32,
    pub value_heads: u32,
    pub key_width: u32,
    pub value_width: u32,
    pub taps: u32,
}

impl Linear {
    /// Numbers of q, and of k.
    pub(crate) fn keys(&self) -> u32 {
        self.key_heads * self.key_width
    }

    /// Numbers of v.
    pub(crate) fn values(&self) -> u32 {
        self.value_heads * self.value_width
    }
}

/// Sizes of routed MLPs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Routed {
    pub experts: u32,
    pub used: u32,
    pub hidden: u32,
    pub renormalise: bool,
    /// Hidden width of the expert that every row passes.
    pub shared_hidden: Option<u32>,
}

impl Config {
    /// Reads the keys; an error names the key.
    pub(crate) fn read(json: &Value) -> Result<Self, String> {
        let top = Keys::top(json);
        let kind = top.required("model_type", top.word("model_type")?)?;
        let newer = match kind {
            "qwen3_moe" => false,
            "qwen3_5_moe" | "qwen3_5" => true,
            _ => return Err(top.bad("model_type", "qwen3_moe, qwen3_5_moe or qwen3_5")),
        };
        let keys = if newer { top.object_or_self("text_config")? } else { top };
        refuse_variants(&keys)?;
        let routed = if kind == "qwen3_5" { None } else { Some(routed(&keys, newer)?) };
        let dense_hidden = keys.optional_size("intermediate_size", SIZE_MAX)?;
        let layers = layers(&keys, newer, routed.is_some())?;
        if layers.iter().any(|layer| !layer.routed) {
            keys.required("intermediate_size", dense_hidden)?;
        }
        let hidden = keys.size("hidden_size", SIZE_MAX)?;
        // A draft head reads two rows side by side.
        keys.row("hidden_size", &[if newer { 2 } else { 1 }, hidden])?;
        let linear = layers.iter().any(|layer| layer.linear).then(|| linear(&keys)).transpose()?;
        let tied = |keys: &Keys<'_>| keys.flag("tie_word_embeddings");
        Ok(Self {
            hidden,
            vocab: keys.size("vocab_size", SIZE_MAX)?,
            context_max: keys.size("max_position_embeddings", CONTEXT_MAX)?,
            norm_eps: keys.number("rms_norm_eps", 0.0..=1.0)?.unwrap_or(1e-6) as f32,
            tied_embeddings: tied(&top)?.or(tied(&keys)?).unwrap_or(false),
            attention: attention(&keys, newer)?,
            linear,
            routed,
            dense_hidden: dense_hidden.unwrap_or(0),
            layers,
            newer,
            converted: false,
        })
    }
}

/// What the architecture allows and this plugin does not record is an error, not a guess.
fn refuse_variants(keys: &Keys<'_>) -> Result<(), String> {
    keys.only("attention_bias", &json!(false))?;
    keys.only("hidden_act", &json!("silu"))?;
    keys.only("use_sliding_window", &json!(false))?;
    keys.only("attn_output_gate", &json!(true))?;
    keys.only("mtp_use_dedicated_embeddings", &json!(false))?;
    match keys.whole("mtp_num_hidden_layers", 0..=64)? {
        None | Some(0 | 1) => Ok(()),
        Some(more) => Err(keys.fault("mtp_num_hidden_layers", &format!("{more} is not implemented"))),
    }
}

fn attention(keys: &Keys<'_>, newer: bool) -> Result<Attention, String> {
    let heads = keys.size("num_attention_heads", COUNT_MAX)?;
    let kv_heads = keys.optional_size("num_key_value_heads", COUNT_MAX)?.unwrap_or(heads);
    if !heads.is_multiple_of(kv_heads) {
        return Err(keys.fault("num_key_value_heads", &format!("{kv_heads} does not divide {heads} heads")));
    }
    let head_width = keys.size("head_dim", COUNT_MAX)?;
    keys.row("head_dim", &[heads, head_width])?;
    let parameters = keys.object("rope_parameters")?;
    let share = |keys: &Keys<'_>| keys.number("partial_rotary_factor", 0.0..=1.0);
    let nested = parameters.as_ref().map_or(Ok(None), share)?;
    let share = nested.or(share(keys)?);
    // Heads of the older models turn whole; of the newer ones a part, which is not guessed.
    let share = if newer { keys.required("partial_rotary_factor", share)? } else { share.unwrap_or(1.0) };
    let rotary_width = (f64::from(head_width) * share) as u32;
    if rotary_width == 0 || !rotary_width.is_multiple_of(2) {
        return Err(keys.fault("partial_rotary_factor", &format!("of a head of {head_width} is {rotary_width}, expected an even number")));
    }
    let rope_theta = keys.plain_rope_theta()?;
    let given = parameters.as_ref().and_then(|own| own.value("rope_theta")).or(keys.value("rope_theta"));
    keys.required("rope_theta", given)?;
    Ok(Attention { heads, kv_heads, head_width, rotary_width, rope_theta })
}

fn linear(keys: &Keys<'_>) -> Result<Linear, String> {
    let size = |key: &str| keys.size(key, COUNT_MAX);
    let linear = Linear {
        key_heads: size("linear_num_key_heads")?,
        value_heads: size("linear_num_value_heads")?,
        key_width: size("linear_key_head_dim")?,
        value_width: size("linear_value_head_dim")?,
        taps: keys.required("linear_conv_kernel_dim", keys.whole("linear_conv_kernel_dim", 2..=1024)?)?,
    };
    if !linear.value_heads.is_multiple_of(linear.key_heads) {
        return Err(keys.fault("linear_num_key_heads", &format!("{} does not divide {} value heads", linear.key_heads, linear.value_heads)));
    }
    keys.row("linear_key_head_dim", &[4, linear.key_heads, linear.key_width])?;
    keys.row("linear_value_head_dim", &[2, linear.value_heads, linear.value_width])?;
    keys.accumulator("linear_num_value_heads", &[linear.value_heads, linear.key_width, linear.value_width])?;
    Ok(linear)
}

fn routed(keys: &Keys<'_>, newer: bool) -> Result<Routed, String> {
    // Newer releases of transformers write the second name for older models.
    let other = keys.optional_size("num_local_experts", COUNT_MAX)?;
    let experts = keys.required("num_experts", keys.optional_size("num_experts", COUNT_MAX)?.or(other))?;
    let used = keys.size("num_experts_per_tok", 1024)?;
    if used > experts {
        return Err(keys.fault("num_experts_per_tok", &format!("{used} of `num_experts` {experts}")));
    }
    if newer {
        // They always do.
        keys.only("norm_topk_prob", &json!(true))?;
    }
    Ok(Routed {
        experts,
        used,
        hidden: keys.size("moe_intermediate_size", SIZE_MAX)?,
        renormalise: if newer { true } else { keys.required("norm_topk_prob", keys.flag("norm_topk_prob")?)? },
        shared_hidden: keys.optional_size("shared_expert_intermediate_size", SIZE_MAX)?.filter(|_| newer),
    })
}

fn layers(keys: &Keys<'_>, newer: bool, routed: bool) -> Result<Vec<LayerKind>, String> {
    let count = keys.size("num_hidden_layers", LAYERS_MAX)?;
    let linear = if newer { linear_layers(keys, count)? } else { vec![false; count as usize] };
    let dense = keys.wholes("mlp_only_layers", 0..=LAYERS_MAX)?.unwrap_or_default();
    let step = keys.optional_size("decoder_sparse_step", LAYERS_MAX)?.unwrap_or(1);
    let kind =
        |(index, linear): (u32, bool)| LayerKind { linear, routed: routed && !dense.contains(&index) && (index + 1).is_multiple_of(step) };
    Ok((0..count).zip(linear).map(kind).collect())
}

fn linear_layers(keys: &Keys<'_>, count: u32) -> Result<Vec<bool>, String> {
    let Some(types) = keys.words("layer_types")? else {
        let interval = keys.optional_size("full_attention_interval", LAYERS_MAX)?.unwrap_or(4);
        return Ok((0..count).map(|index| !(index + 1).is_multiple_of(interval)).collect());
    };
    if types.len() != count as usize {
        return Err(keys.fault("layer_types", &format!("has {} entries, expected `num_hidden_layers` {count}", types.len())));
    }
    let linear = |kind: &&str| match *kind {
        "linear_attention" => Ok(true),
        "full_attention" => Ok(false),
        other => Err(keys.fault("layer_types", &format!("`{}` is not implemented", other.escape_debug()))),
    };
    types.iter().map(linear).collect()
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
