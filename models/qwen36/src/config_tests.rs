//! What is read of `config.json`, what is refused, and that all that is read can be described and recorded.

use super::*;
use crate::{forward, weights};
use coli_blocks::testing::{any_json, changed, names_a_key, put, record_some};
use proptest::prelude::*;

fn older() -> Value {
    json!({
        "model_type": "qwen3_moe", "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 32, "intermediate_size": 96, "moe_intermediate_size": 32, "num_experts": 8, "num_experts_per_tok": 2,
        "norm_topk_prob": true, "decoder_sparse_step": 1, "mlp_only_layers": [], "vocab_size": 256, "max_position_embeddings": 512,
        "rms_norm_eps": 1e-6, "rope_theta": 1e6, "hidden_act": "silu", "use_sliding_window": false
    })
}

fn good() -> Value {
    json!({
        "model_type": "qwen3_5_moe", "tie_word_embeddings": false,
        "text_config": {
            "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
            "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"],
            "linear_conv_kernel_dim": 4, "linear_key_head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
            "linear_value_head_dim": 16, "moe_intermediate_size": 32, "num_experts": 8, "num_experts_per_tok": 2,
            "shared_expert_intermediate_size": 48, "vocab_size": 256, "max_position_embeddings": 512, "rms_norm_eps": 1e-6,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25, "mrope_section": [2, 1, 1]}
        }
    })
}

fn dense() -> Value {
    with(good(), &[("model_type", json!("qwen3_5")), ("text_config.intermediate_size", json!(96))])
}

fn with(mut json: Value, changes: &[(&str, Value)]) -> Value {
    changes.iter().for_each(|(place, value)| put(&mut json, place, value.clone()));
    json
}

fn read(json: Value, changes: &[(&str, Value)]) -> Config {
    Config::read(&with(json, changes)).unwrap()
}

#[test]
fn both_generations_are_read() {
    let old = read(older(), &[]);
    assert!(!old.newer && old.linear.is_none() && old.layers.iter().all(|layer| layer.routed && !layer.linear));
    assert_eq!((old.attention.rotary_width, old.attention.rope_theta), (32, 1e6));
    let new = read(good(), &[]);
    let linear: Vec<bool> = new.layers.iter().map(|layer| layer.linear).collect();
    assert_eq!((new.newer, linear), (true, vec![true, true, true, false]));
    assert_eq!((new.attention.rotary_width, new.attention.rope_theta), (8, 1e7));
    assert_eq!(new.routed.unwrap().shared_hidden, Some(48));
    let dense = read(dense(), &[]);
    assert!(dense.routed.is_none() && dense.layers.iter().all(|layer| !layer.routed) && dense.dense_hidden == 96);
}

#[test]
fn keys_are_read_where_either_generation_has_them() {
    let null = || Value::Null;
    // The keys of a language model alone are at the top.
    let mut flat = good()["text_config"].clone();
    flat["model_type"] = json!("qwen3_5_moe");
    assert_eq!(Config::read(&flat), Config::read(&good()));
    let every_fourth = [("text_config.layer_types", null()), ("text_config.full_attention_interval", json!(4))];
    assert_eq!(read(good(), &every_fourth), read(good(), &[]));
    assert_eq!(read(good(), &every_fourth[..1]), read(good(), &[]));
    let flat_rope = [
        ("text_config.rope_parameters", null()),
        ("text_config.rope_theta", json!(1e7)),
        ("text_config.partial_rotary_factor", json!(0.25)),
    ];
    assert_eq!(read(good(), &flat_rope), read(good(), &[]));
    let nested = [("rope_parameters", json!({"rope_type": "default", "rope_theta": 5e5})), ("rope_scaling", null())];
    assert_eq!(read(older(), &nested).attention.rope_theta, 5e5);
    assert_eq!(read(older(), &[("num_experts", null()), ("num_local_experts", json!(8))]), read(older(), &[]));
    assert!(read(good(), &[("tie_word_embeddings", null()), ("text_config.tie_word_embeddings", json!(true))]).tied_embeddings);
    assert!(!read(good(), &[("text_config.tie_word_embeddings", json!(true))]).tied_embeddings);
}

#[test]
fn dense_layers_between_routed_ones_are_found() {
    let routed = |changes: &[(&str, Value)]| read(older(), changes).layers.iter().map(|layer| layer.routed).collect::<Vec<_>>();
    assert_eq!(routed(&[("mlp_only_layers", json!([1]))]), [true, false, true]);
    assert_eq!(routed(&[("decoder_sparse_step", json!(2))]), [false, true, false]);
    let json = with(older(), &[("decoder_sparse_step", json!(2)), ("intermediate_size", Value::Null)]);
    assert_eq!(Config::read(&json).unwrap_err(), "config.json: `intermediate_size` is missing");
}

fn refused(json: Value, place: &str, value: Value) {
    let error = Config::read(&with(json, &[(place, value.clone())])).unwrap_err();
    assert!(names_a_key(&error, &[place]), "{place} = {value}: {error}");
}

#[test]
fn every_bad_key_of_the_older_models_is_named() {
    for (key, value) in [
        ("model_type", json!("qwen3")),
        ("model_type", json!(3)),
        ("hidden_size", json!(0)),
        ("num_hidden_layers", json!(4_000_000_000u64)),
        ("num_attention_heads", json!(0)),
        ("num_key_value_heads", json!(3)),
        ("head_dim", Value::Null),
        ("head_dim", json!(1 << 20)),
        ("head_dim", json!(u64::MAX)),
        ("num_experts", json!(0)),
        ("num_experts", Value::Null),
        ("num_experts_per_tok", json!(9)),
        ("norm_topk_prob", Value::Null),
        ("mlp_only_layers", json!([-1])),
        ("decoder_sparse_step", json!(0)),
        ("vocab_size", json!(-1)),
        ("use_sliding_window", json!(true)),
        ("attention_bias", json!(true)),
        ("hidden_act", json!("gelu")),
        ("rms_norm_eps", json!(2.0)),
        ("rope_theta", json!(0.5)),
        ("rope_theta", Value::Null),
        ("rope_parameters", json!("x")),
        ("max_position_embeddings", json!(1u64 << 27)),
    ] {
        refused(older(), key, value);
    }
    assert!(Config::read(&json!([])).is_err());
}

#[test]
fn every_bad_key_of_the_newer_models_is_named() {
    for (key, value) in [
        ("hidden_size", json!(1 << 21)),
        ("layer_types", json!(["full_attention"])),
        ("layer_types", json!(["linear_attention", "sliding_attention", "full_attention", "full_attention"])),
        ("layer_types", json!([1, 2, 3, 4])),
        ("linear_conv_kernel_dim", json!(1)),
        ("linear_num_key_heads", json!(3)),
        ("linear_key_head_dim", json!(1 << 17)),
        ("linear_key_head_dim", Value::Null),
        ("linear_value_head_dim", json!(1 << 20)),
        ("shared_expert_intermediate_size", json!("x")),
        ("partial_rotary_factor", json!(0.01)),
        ("partial_rotary_factor", json!(1.5)),
        ("attn_output_gate", json!(false)),
        ("mtp_use_dedicated_embeddings", json!(true)),
        ("mtp_num_hidden_layers", json!(2)),
        ("norm_topk_prob", json!(false)),
        ("rope_scaling", json!({"type": "yarn", "factor": 4})),
    ] {
        let json = with(good(), &[("text_config.rope_parameters", Value::Null), ("text_config.partial_rotary_factor", json!(0.25))]);
        let place = format!("text_config.{key}");
        let error = Config::read(&with(json, &[(&place, value.clone())])).unwrap_err();
        assert!(names_a_key(&error, &[key, "rope_type"]), "{key} = {value}: {error}");
    }
    refused(good(), "text_config", json!(3));
    refused(good(), "text_config.rope_parameters.partial_rotary_factor", Value::Null);
    refused(good(), "text_config.rope_parameters.rope_theta", Value::Null);
    assert_eq!(read(good(), &[("text_config.norm_topk_prob", json!(true))]), read(good(), &[]));
    refused(dense(), "text_config.intermediate_size", Value::Null);
    let wide = [
        ("text_config.linear_num_value_heads", json!(32)),
        ("text_config.linear_key_head_dim", json!(1 << 13)),
        ("text_config.linear_value_head_dim", json!(1 << 14)),
    ];
    let error = Config::read(&with(good(), &wide)).unwrap_err();
    assert!(error.contains("`linear_num_value_heads` in `text_config` makes an accumulator of 4294967296 numbers"), "{error}");
}

/// Describes and records with draft head and without, experts in two tensors or in three for each.
fn use_of(config: &Config) -> Result<(), String> {
    for (draft, fused) in [(false, false), (true, true)] {
        let stored = |name: &str| if name.starts_with("mtp.fc") { draft } else { fused };
        let (model, description) = weights::describe(config, stored);
        record_some(&description, |segment, recorder| forward::record(config, &model, segment, recorder))?;
    }
    Ok(())
}

#[test]
fn thousands_of_layers_and_the_largest_sizes_are_described() {
    let many = [("text_config.num_hidden_layers", json!(4000)), ("text_config.layer_types", Value::Null)];
    use_of(&read(good(), &many)).unwrap();
    let old = [("num_hidden_layers", json!(4000)), ("mlp_only_layers", json!((0..4000).collect::<Vec<u32>>()))];
    use_of(&read(older(), &old)).unwrap();
    let large = [
        ("hidden_size", json!(SIZE_MAX)),
        ("num_attention_heads", json!(32)),
        ("num_key_value_heads", json!(32)),
        ("head_dim", json!(COUNT_MAX)),
        ("moe_intermediate_size", json!(SIZE_MAX)),
        ("num_experts", json!(COUNT_MAX)),
        ("num_experts_per_tok", json!(1024)),
        ("vocab_size", json!(SIZE_MAX)),
    ];
    use_of(&read(older(), &large)).unwrap();
}

/// How weights are stored is the host's matter.
#[test]
fn quantization_is_not_read() {
    let stored = json!({"quant_method": "fp8", "weight_block_size": [128, 128]});
    let mut json = good();
    (json["quantization_config"], json["text_config"]["quantization_config"]) = (stored.clone(), stored);
    Config::read(&json).unwrap();
}

const PLACES: [&str; 51] = [
    "model_type",
    "tie_word_embeddings",
    "text_config",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "moe_intermediate_size",
    "num_experts",
    "num_local_experts",
    "num_experts_per_tok",
    "norm_topk_prob",
    "mlp_only_layers",
    "decoder_sparse_step",
    "vocab_size",
    "max_position_embeddings",
    "rope_theta",
    "rope_type",
    "rope_scaling",
    "rope_parameters",
    "partial_rotary_factor",
    "text_config.hidden_size",
    "text_config.num_hidden_layers",
    "text_config.num_attention_heads",
    "text_config.num_key_value_heads",
    "text_config.head_dim",
    "text_config.layer_types",
    "text_config.full_attention_interval",
    "text_config.intermediate_size",
    "text_config.moe_intermediate_size",
    "text_config.shared_expert_intermediate_size",
    "text_config.num_experts",
    "text_config.num_experts_per_tok",
    "text_config.linear_conv_kernel_dim",
    "text_config.linear_key_head_dim",
    "text_config.linear_num_key_heads",
    "text_config.linear_num_value_heads",
    "text_config.linear_value_head_dim",
    "text_config.mlp_only_layers",
    "text_config.vocab_size",
    "text_config.rms_norm_eps",
    "text_config.rope_parameters",
    "text_config.rope_parameters.rope_theta",
    "text_config.rope_parameters.partial_rotary_factor",
    "text_config.partial_rotary_factor",
    "text_config.rope_theta",
    "text_config.tie_word_embeddings",
    "text_config.hidden_act",
    "text_config.mtp_num_hidden_layers",
];

const WORDS: [&str; 7] = ["qwen3_moe", "qwen3_5_moe", "qwen3_5", "silu", "default", "linear_attention", "full_attention"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// What is read can be described and recorded.
    #[test]
    fn any_config_is_read_or_refused_by_key(base in 0..3usize, numbers in prop::collection::vec(any::<u64>(), 1..12)) {
        let json = changed(&[older(), good(), dense()][base], &PLACES, &WORDS, &numbers);
        match Config::read(&json) {
            Ok(config) => prop_assert_eq!(use_of(&config), Ok(()), "{}", json),
            Err(error) => prop_assert!(names_a_key(&error, &PLACES), "{}: {}", error, json),
        }
    }

    #[test]
    fn any_json_is_read_or_refused(numbers in prop::collection::vec(any::<u64>(), 1..40)) {
        let _ = Config::read(&any_json(&PLACES, &WORDS, &numbers));
    }
}
