//! GGUF files of these architectures: names, and what their metadata leaves out or their converter changed.
//!
//! The converter adds 1 to the norms that are stored as distances from 1, stores `-exp(A)` in A's place, and lays value heads out so that
//! those of one key head are apart (tiled), where there are more of them than key heads.

use coli_blocks::gguf::{Names, Pairs, common, stored_rows};
use coli_plugin_api::describe::{DescribeRequest, Description};
use coli_plugin_api::serde_json::{Value, json};

/// The architectures, each with the model type that it is.
const KINDS: [(&str, &str); 3] = [("qwen3moe", "qwen3_moe"), ("qwen35moe", "qwen3_5_moe"), ("qwen35", "qwen3_5")];

const KEYS: &Pairs = &[
    ("hidden_size", "embedding_length"),
    ("num_hidden_layers", "block_count"),
    ("num_attention_heads", "attention.head_count"),
    ("num_key_value_heads", "attention.head_count_kv"),
    ("head_dim", "attention.key_length"),
    ("intermediate_size", "feed_forward_length"),
    ("num_experts", "expert_count"),
    ("num_experts_per_tok", "expert_used_count"),
    ("moe_intermediate_size", "expert_feed_forward_length"),
    ("shared_expert_intermediate_size", "expert_shared_feed_forward_length"),
    ("rope_theta", "rope.freq_base"),
    ("rms_norm_eps", "attention.layer_norm_rms_epsilon"),
    ("max_position_embeddings", "context_length"),
    ("linear_num_key_heads", "ssm.group_count"),
    ("linear_num_value_heads", "ssm.time_step_rank"),
    ("linear_key_head_dim", "ssm.state_size"),
    ("linear_conv_kernel_dim", "ssm.conv_kernel"),
    ("full_attention_interval", "full_attention_interval"),
    ("mtp_num_hidden_layers", "nextn_predict_layers"),
];

const IN_LAYER: &Pairs = &[
    ("input_layernorm.weight", "attn_norm.weight"),
    ("self_attn.q_proj.weight", "attn_q.weight"),
    ("self_attn.k_proj.weight", "attn_k.weight"),
    ("self_attn.v_proj.weight", "attn_v.weight"),
    ("self_attn.o_proj.weight", "attn_output.weight"),
    ("self_attn.q_norm.weight", "attn_q_norm.weight"),
    ("self_attn.k_norm.weight", "attn_k_norm.weight"),
    ("linear_attn.in_proj_qkv.weight", "attn_qkv.weight"),
    ("linear_attn.in_proj_z.weight", "attn_gate.weight"),
    ("linear_attn.in_proj_b.weight", "ssm_beta.weight"),
    ("linear_attn.in_proj_a.weight", "ssm_alpha.weight"),
    ("linear_attn.conv1d.weight", "ssm_conv1d.weight"),
    ("linear_attn.dt_bias", "ssm_dt.bias"),
    ("linear_attn.A_log", "ssm_a"),
    ("linear_attn.norm.weight", "ssm_norm.weight"),
    ("linear_attn.out_proj.weight", "ssm_out.weight"),
    ("mlp.gate_proj.weight", "ffn_gate.weight"),
    ("mlp.up_proj.weight", "ffn_up.weight"),
    ("mlp.down_proj.weight", "ffn_down.weight"),
    ("mlp.gate.weight", "ffn_gate_inp.weight"),
    ("mlp.shared_expert.gate_proj.weight", "ffn_gate_shexp.weight"),
    ("mlp.shared_expert.up_proj.weight", "ffn_up_shexp.weight"),
    ("mlp.shared_expert.down_proj.weight", "ffn_down_shexp.weight"),
    ("mlp.shared_expert_gate.weight", "ffn_gate_inp_shexp.weight"),
    ("mlp.experts.{expert}.gate_proj.weight", "ffn_gate_exps.weight"),
    ("mlp.experts.{expert}.up_proj.weight", "ffn_up_exps.weight"),
    ("mlp.experts.{expert}.down_proj.weight", "ffn_down_exps.weight"),
    ("fc.weight", "nextn.eh_proj.weight"),
    ("pre_fc_norm_embedding.weight", "nextn.enorm.weight"),
    ("pre_fc_norm_hidden.weight", "nextn.hnorm.weight"),
    ("norm.weight", "nextn.shared_head_norm.weight"),
];

/// Names of the layers' second norms, which differ.
const OLDER: &Pairs = &[("post_attention_layernorm.weight", "ffn_norm.weight")];
const NEWER: &Pairs = &[("post_attention_layernorm.weight", "post_attention_norm.weight")];

/// A file's names, by its architecture and number of layers.
pub(crate) struct File<'a> {
    architecture: &'a str,
    kind: &'static str,
    /// The model's own layers; the draft head is the one that follows.
    layers: u64,
}

impl<'a> File<'a> {
    /// The file of a request. An error where its architecture is not one of these.
    pub(crate) fn of(request: &'a DescribeRequest) -> Result<Self, String> {
        let architecture = request.config.get("general.architecture").and_then(Value::as_str).unwrap_or_default();
        let kind = KINDS.iter().find(|(known, _)| *known == architecture);
        let (_, kind) = kind.ok_or_else(|| format!("GGUF metadata: `general.architecture` is `{}`", architecture.escape_debug()))?;
        let number = |name: &str| request.config.get(format!("{architecture}.{name}")).and_then(Value::as_u64).unwrap_or(0);
        Ok(Self { architecture, kind, layers: number("block_count").saturating_sub(number("nextn_predict_layers")) })
    }

    fn newer(&self) -> bool {
        self.kind != "qwen3_moe"
    }

    fn prefix(&self) -> &'static str {
        if self.newer() { "model.language_model." } else { "model." }
    }

    fn names(&self, in_layer: &'static Pairs) -> Names<'_> {
        let layers = if self.newer() { "model.language_model.layers." } else { "model.layers." };
        Names { architecture: self.architecture, keys: KEYS, layers, whole: &[("lm_head.weight", "output.weight")], in_layer }
    }

    /// The metadata in the words of `config.json`.
    pub(crate) fn config(&self, request: &DescribeRequest) -> Value {
        let mut config = self.names(IN_LAYER).config(&request.config);
        let mut put = |key: &str, value: Value| drop(config.insert(key.into(), value));
        put("model_type", json!(self.kind));
        put("num_hidden_layers", json!(self.layers));
        put("tie_word_embeddings", json!(!request.tensors.iter().any(|tensor| tensor.name == "output.weight")));
        put("norm_topk_prob", json!(true));
        if let Some(rows) = stored_rows(&request.tensors, "token_embd.weight") {
            put("vocab_size", rows);
        }
        let of = |name: &str| request.config.get(format!("{}.{name}", self.architecture));
        let number = |name: &str| of(name).and_then(Value::as_u64);
        // Without the key all columns turn.
        if let (Some(turning), Some(width @ 1..)) = (number("rope.dimension_count"), number("attention.key_length")) {
            put("partial_rotary_factor", json!(turning as f64 / width as f64));
        }
        if let (Some(all), Some(heads @ 1..)) = (number("ssm.inner_size"), number("ssm.time_step_rank")) {
            put("linear_value_head_dim", json!(all / heads));
        }
        if let Some(types) = of("attention.recurrent_layers").and_then(Value::as_array) {
            let kind = |linear: &Value| json!(if *linear == json!(true) { "linear_attention" } else { "full_attention" });
            let own = usize::try_from(self.layers).unwrap_or(usize::MAX);
            put("layer_types", types.iter().take(own).map(kind).collect());
        }
        for key in ["num_key_value_heads", "intermediate_size"] {
            let agreed = config.get(key).map(common);
            config.extend(agreed.map(|value| (key.to_string(), value)));
        }
        Value::Object(config)
    }

    /// An error about the configuration, with the names of the file.
    pub(crate) fn words(&self, error: &str) -> String {
        self.names(IN_LAYER).in_the_files_words(error)
    }

    /// Whether the file has a tensor that is asked for by its published name.
    pub(crate) fn has(&self, request: &DescribeRequest, name: &str) -> bool {
        let found = self.tensor(name);
        found.is_ok_and(|name| request.tensors.iter().any(|tensor| tensor.name == name))
    }

    /// Puts the file's names into the description.
    pub(crate) fn rename(&self, description: &mut Description) -> Result<(), String> {
        coli_blocks::gguf::rename(description, &|name| self.tensor(name))
    }

    fn tensor(&self, name: &str) -> Result<String, String> {
        let prefix = self.prefix();
        match name.strip_prefix(prefix) {
            Some("embed_tokens.weight") => return Ok("token_embd.weight".into()),
            Some("norm.weight") => return Ok("output_norm.weight".into()),
            _ => {}
        }
        // The draft head's tensors lie in the layer after the last one.
        let name = match name.strip_prefix("mtp.") {
            Some(rest) => format!("{prefix}layers.{}.{}", self.layers, rest.strip_prefix("layers.0.").unwrap_or(rest)),
            None => name.to_string(),
        };
        let second = if self.newer() { NEWER } else { OLDER };
        self.names(second).tensor(&name).or_else(|_| self.names(IN_LAYER).tensor(&name))
    }
}
