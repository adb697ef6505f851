//! GGUF files of this architecture: names, and what their metadata leaves out or their converter changed.
//!
//! The converter stores `-exp(A)` in A's place, and the rows that make keys and values of a latent row as two tensors of a matrix for each
//! head, that for keys transposed.

use coli_blocks::gguf::{self, Names, common, stored_rows};
use coli_plugin_api::describe::{DescribeRequest, Description};
use coli_plugin_api::serde_json::{Value, json};

/// The published name that stands for the tensor of key matrices, which published files do not have.
pub(crate) const KEYS_UP: &str = "self_attn.k_b_proj";
/// The same for values.
pub(crate) const VALUES_UP: &str = "self_attn.v_b_proj";

const ARCHITECTURE: &str = "glm5-next";

const NAMES: Names<'static> = Names {
    architecture: ARCHITECTURE,
    keys: &[
        ("hidden_size", "embedding_length"),
        ("num_attention_heads", "attention.head_count"),
        ("intermediate_size", "feed_forward_length"),
        ("vocab_size", "vocab_size"),
        ("max_position_embeddings", "context_length"),
        ("rms_norm_eps", "attention.layer_norm_rms_epsilon"),
        ("n_routed_experts", "expert_count"),
        ("num_experts_per_tok", "expert_used_count"),
        ("n_group", "expert_group_count"),
        ("topk_group", "expert_group_used_count"),
        ("moe_intermediate_size", "expert_feed_forward_length"),
        ("n_shared_experts", "expert_shared_count"),
        ("routed_scaling_factor", "expert_weights_scale"),
        ("norm_topk_prob", "expert_weights_norm"),
        ("first_k_dense_replace", "leading_dense_block_count"),
        ("linear_conv_kernel_dim", "ssm.conv_kernel"),
        ("linear_head_dim", "kda.head_dim"),
        ("linear_lower_bound", "kda.gate_lower_bound"),
        ("q_lora_rank", "attention.q_lora_rank"),
        ("kv_lora_rank", "attention.kv_lora_rank"),
        ("qk_rope_head_dim", "rope.dimension_count"),
        ("qk_nope_head_dim", "attention.key_length_mla"),
        ("v_head_dim", "attention.value_length_mla"),
        ("index_n_heads", "attention.indexer.head_count"),
        ("index_head_dim", "attention.indexer.key_length"),
        ("index_topk", "attention.indexer.top_k"),
        ("index_kpool", "attention.indexer.kpool"),
        ("index_kpool_always_select_tail", "attention.indexer.kpool_select_tail"),
        ("hc_mult", "hyper_connection.count"),
        ("hc_sinkhorn_iters", "hyper_connection.sinkhorn_iterations"),
        ("hc_eps", "hyper_connection.epsilon"),
        ("num_nextn_predict_layers", "nextn_predict_layers"),
    ],
    layers: "model.language_model.layers.",
    whole: &[
        ("model.language_model.embed_tokens.weight", "token_embd.weight"),
        ("model.language_model.norm.weight", "output_norm.weight"),
        ("lm_head.weight", "output.weight"),
    ],
    in_layer: &[
        ("hc_attn_fn", "hc_attn_fn.weight"),
        ("hc_attn_scale", "hc_attn_scale.weight"),
        ("hc_attn_base", "hc_attn_base.weight"),
        ("hc_ffn_fn", "hc_ffn_fn.weight"),
        ("hc_ffn_scale", "hc_ffn_scale.weight"),
        ("hc_ffn_base", "hc_ffn_base.weight"),
        ("input_layernorm.weight", "attn_norm.weight"),
        ("post_attention_layernorm.weight", "ffn_norm.weight"),
        ("self_attn.q_proj.weight", "attn_q.weight"),
        ("self_attn.k_proj.weight", "attn_k.weight"),
        ("self_attn.v_proj.weight", "attn_v.weight"),
        ("self_attn.o_proj.weight", "attn_output.weight"),
        ("self_attn.q_conv1d.weight", "ssm_conv1d_q.weight"),
        ("self_attn.k_conv1d.weight", "ssm_conv1d_k.weight"),
        ("self_attn.v_conv1d.weight", "ssm_conv1d_v.weight"),
        ("self_attn.f_a_proj.weight", "ssm_f_a.weight"),
        ("self_attn.f_b_proj.weight", "ssm_f_b.weight"),
        ("self_attn.g_a_proj.weight", "ssm_g_a.weight"),
        ("self_attn.g_b_proj.weight", "ssm_g_b.weight"),
        ("self_attn.b_proj.weight", "ssm_beta.weight"),
        ("self_attn.A_log", "ssm_a"),
        ("self_attn.dt_bias", "ssm_dt.bias"),
        ("self_attn.o_norm.weight", "ssm_norm.weight"),
        ("self_attn.q_a_proj.weight", "attn_q_a.weight"),
        ("self_attn.q_a_layernorm.weight", "attn_q_a_norm.weight"),
        ("self_attn.q_b_proj.weight", "attn_q_b.weight"),
        ("self_attn.kv_a_proj_with_mqa.weight", "attn_kv_a_mqa.weight"),
        ("self_attn.kv_a_layernorm.weight", "attn_kv_a_norm.weight"),
        (KEYS_UP, "attn_k_b.weight"),
        (VALUES_UP, "attn_v_b.weight"),
        ("self_attn.indexer.wq_b.weight", "indexer.attn_q_b.weight"),
        ("self_attn.indexer.weights_proj.weight", "indexer.proj.weight"),
        ("self_attn.indexer.wk.weight", "indexer.attn_k.weight"),
        ("self_attn.indexer.k_norm.weight", "indexer.k_norm.weight"),
        ("self_attn.indexer.k_norm.bias", "indexer.k_norm.bias"),
        ("self_attn.indexer.index_kpool_compress_gate", "indexer_compressor_gate.weight"),
        ("self_attn.indexer.index_kpool_compress_ape", "indexer_compressor_ape.weight"),
        ("mlp.gate_proj.weight", "ffn_gate.weight"),
        ("mlp.up_proj.weight", "ffn_up.weight"),
        ("mlp.down_proj.weight", "ffn_down.weight"),
        ("mlp.gate.weight", "ffn_gate_inp.weight"),
        ("mlp.gate.e_score_correction_bias", "exp_probs_b.bias"),
        ("mlp.shared_experts.gate_proj.weight", "ffn_gate_shexp.weight"),
        ("mlp.shared_experts.up_proj.weight", "ffn_up_shexp.weight"),
        ("mlp.shared_experts.down_proj.weight", "ffn_down_shexp.weight"),
        ("mlp.experts.{expert}.gate_proj.weight", "ffn_gate_exps.weight"),
        ("mlp.experts.{expert}.up_proj.weight", "ffn_up_exps.weight"),
        ("mlp.experts.{expert}.down_proj.weight", "ffn_down_exps.weight"),
        ("eh_proj.weight", "nextn.eh_proj.weight"),
        ("enorm.weight", "nextn.enorm.weight"),
        ("hnorm.weight", "nextn.hnorm.weight"),
        ("shared_head.norm.weight", "nextn.shared_head_norm.weight"),
    ],
};

/// The metadata in the words of `config.json`. An error is about what has no such word.
pub(crate) fn config(request: &DescribeRequest) -> Result<Value, String> {
    let of = |name: &str| request.config.get(format!("{ARCHITECTURE}.{name}"));
    let number = |name: &str| of(name).and_then(Value::as_u64).unwrap_or(0);
    let mut config = NAMES.config(&request.config);
    let mut put = |key: &str, value: Value| drop(config.insert(key.into(), value));
    // The draft head is counted as a layer.
    let layers = number("block_count").saturating_sub(number("nextn_predict_layers"));
    put("num_hidden_layers", json!(layers));
    put("tie_word_embeddings", json!(!request.tensors.iter().any(|tensor| tensor.name == "output.weight")));
    if let Some(heads) = (0..layers.min(8)).find_map(|layer| stored_rows(&request.tensors, &format!("blk.{layer}.ssm_a"))) {
        put("linear_num_heads", heads);
    }
    let own = usize::try_from(layers).unwrap_or(usize::MAX);
    // A layer without heads of K and V is one of the delta rule.
    let kv = of("attention.head_count_kv").and_then(Value::as_array);
    let kv = kv.ok_or_else(|| format!("GGUF metadata: `{ARCHITECTURE}.attention.head_count_kv` is not a list"))?;
    let kind = |heads: &Value| json!(if *heads == json!(0) { "linear_attention" } else { "deepseek_sparse_attention" });
    put("layer_types", kv.iter().take(own).map(kind).collect());
    // Sigmoid; the only one that this plugin records.
    if number("expert_gating_func") != 2 {
        return Err(format!("GGUF metadata: `{ARCHITECTURE}.expert_gating_func` is not 2 (sigmoid)"));
    }
    for limit in ["swiglu_clamp_exp", "swiglu_clamp_shexp"] {
        let value = of(limit).map(common).unwrap_or(Value::Null);
        if config.get("swiglu_limit").is_some_and(|other| *other != value) {
            return Err(format!("GGUF metadata: `{ARCHITECTURE}.{limit}` is {value}, and that of experts is another"));
        }
        config.insert("swiglu_limit".into(), value);
    }
    Ok(Value::Object(config))
}

/// An error about the configuration, with the names of the file.
pub(crate) fn words(error: &str) -> String {
    NAMES.in_the_files_words(error)
}

/// Whether the file has a tensor that is asked for by its published name.
pub(crate) fn has(request: &DescribeRequest, name: &str) -> bool {
    NAMES.tensor(name).is_ok_and(|name| request.tensors.iter().any(|tensor| tensor.name == name))
}

/// Puts the file's names into the description.
pub(crate) fn rename(description: &mut Description) -> Result<(), String> {
    gguf::rename(description, &|name| NAMES.tensor(name))
}
