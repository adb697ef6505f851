//! GGUF files of this architecture: names, and what their metadata leaves out.

use coli_blocks::gguf::{Names, stored_rows};
use coli_plugin_api::describe::{DescribeRequest, Description};
use coli_plugin_api::serde_json::{Value, json};

const NAMES: Names<'static> = Names {
    architecture: "olmoe",
    keys: &[
        ("hidden_size", "embedding_length"),
        ("num_hidden_layers", "block_count"),
        ("num_attention_heads", "attention.head_count"),
        ("num_key_value_heads", "attention.head_count_kv"),
        ("intermediate_size", "feed_forward_length"),
        ("num_experts", "expert_count"),
        ("num_experts_per_tok", "expert_used_count"),
        ("rope_theta", "rope.freq_base"),
        ("rms_norm_eps", "attention.layer_norm_rms_epsilon"),
        ("max_position_embeddings", "context_length"),
    ],
    layers: "model.layers.",
    whole: &[
        ("model.embed_tokens.weight", "token_embd.weight"),
        ("model.norm.weight", "output_norm.weight"),
        ("lm_head.weight", "output.weight"),
    ],
    in_layer: &[
        ("input_layernorm.weight", "attn_norm.weight"),
        ("post_attention_layernorm.weight", "ffn_norm.weight"),
        ("self_attn.q_proj.weight", "attn_q.weight"),
        ("self_attn.k_proj.weight", "attn_k.weight"),
        ("self_attn.v_proj.weight", "attn_v.weight"),
        ("self_attn.o_proj.weight", "attn_output.weight"),
        ("self_attn.q_norm.weight", "attn_q_norm.weight"),
        ("self_attn.k_norm.weight", "attn_k_norm.weight"),
        ("mlp.gate.weight", "ffn_gate_inp.weight"),
        ("mlp.experts.{expert}.gate_proj.weight", "ffn_gate_exps.weight"),
        ("mlp.experts.{expert}.up_proj.weight", "ffn_up_exps.weight"),
        ("mlp.experts.{expert}.down_proj.weight", "ffn_down_exps.weight"),
    ],
};

/// The metadata in the words of `config.json`.
pub(crate) fn config(request: &DescribeRequest) -> Value {
    let mut config = NAMES.config(&request.config);
    config.extend(stored_rows(&request.tensors, "token_embd.weight").map(|rows| ("vocab_size".into(), rows)));
    config.insert("tie_word_embeddings".into(), json!(!request.tensors.iter().any(|tensor| tensor.name == "output.weight")));
    // No file says it; all published models leave the weights as they are.
    config.insert("norm_topk_prob".into(), json!(false));
    Value::Object(config)
}

/// An error about the configuration, with the names of the file.
pub(crate) fn words(error: &str) -> String {
    NAMES.in_the_files_words(error)
}

/// Puts the file's names into the description.
pub(crate) fn rename(description: &mut Description) -> Result<(), String> {
    NAMES.rename(description)
}
