//! What is read of `config.json`, what is refused, and that all that is read can be described and recorded.

use super::*;
use crate::{forward, weights};
use coli_blocks::testing::{any_json, changed, names_a_key, put, record_some};
use proptest::prelude::*;

fn good() -> Value {
    json!({
        "model_type": "glm5_next", "tie_word_embeddings": false,
        "text_config": {
            "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "q_lora_rank": 32, "kv_lora_rank": 24,
            "qk_nope_head_dim": 16, "qk_rope_head_dim": 0, "v_head_dim": 16, "index_n_heads": 16, "index_head_dim": 16, "index_topk": 8,
            "index_kpool": 4, "layer_types": ["linear_attention", "deepseek_sparse_attention", "linear_attention"],
            "mlp_layer_types": ["dense", "sparse", "sparse"], "linear_num_heads": 4, "linear_head_dim": 16, "linear_conv_kernel_dim": 4,
            "linear_lower_bound": -5.0, "intermediate_size": 96, "moe_intermediate_size": 32, "n_routed_experts": 8,
            "n_shared_experts": 1, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "routed_scaling_factor": 2.5,
            "swiglu_limit": 1.0, "hc_mult": 4, "hc_eps": 1e-6, "hc_sinkhorn_iters": 20, "rms_norm_eps": 1e-5, "vocab_size": 256,
            "max_position_embeddings": 512, "hidden_act": "silu", "norm_topk_prob": true, "indexer_types": ["full", "full", "full"]
        }
    })
}

/// Changes keys of `text_config`.
fn with(mut json: Value, changes: &[(&str, Value)]) -> Value {
    changes.iter().for_each(|(key, value)| put(&mut json, &format!("text_config.{key}"), value.clone()));
    json
}

fn read(changes: &[(&str, Value)]) -> Config {
    Config::read(&with(good(), changes)).unwrap()
}

#[test]
fn keys_are_read_where_either_generation_has_them() {
    let config = read(&[]);
    let kinds: Vec<(bool, bool)> = config.layers.iter().map(|layer| (layer.delta, layer.routed)).collect();
    assert_eq!(kinds, [(true, false), (false, true), (true, true)]);
    assert_eq!(Config::read(&good()["text_config"]).unwrap(), config);
    let null = || Value::Null;
    let own = json!({"num_heads": 4, "head_dim": 16, "short_conv_kernel_size": 4, "gate_lower_bound": -5.0, "kda_layers": [0, 2]});
    let nested = [
        ("linear_attn_config", own),
        ("linear_num_heads", null()),
        ("linear_head_dim", null()),
        ("linear_conv_kernel_dim", null()),
        ("linear_lower_bound", null()),
    ];
    assert_eq!(read(&nested), config);
    let counted = [("mlp_layer_types", null()), ("first_k_dense_replace", json!(1))];
    assert_eq!(read(&counted), config);
    let renamed = [("layer_types", json!(["linear_attention", "indexed_attention", "linear_attention"]))];
    assert_eq!(read(&renamed), config);
    assert_eq!(read(&[("index_kpool", null()), ("index_topk", json!(32))]).index.pool, 16);
    let mut json = with(good(), &[("tie_word_embeddings", json!(true))]);
    assert!(!Config::read(&json).unwrap().tied_embeddings);
    json["tie_word_embeddings"] = Value::Null;
    assert!(Config::read(&json).unwrap().tied_embeddings);
}

fn refused(key: &str, value: Value) {
    let error = Config::read(&with(good(), &[(key, value.clone())])).unwrap_err();
    assert!(names_a_key(&error, &[key]), "{key} = {value}: {error}");
}

#[test]
fn every_bad_size_is_named() {
    for (key, value) in [
        ("hidden_size", json!(0)),
        ("hidden_size", json!(u64::MAX)),
        ("hidden_size", json!(1 << 21)),
        ("num_hidden_layers", json!(5000)),
        ("num_attention_heads", json!(0)),
        ("num_attention_heads", json!(COUNT_MAX + 1)),
        ("q_lora_rank", Value::Null),
        ("kv_lora_rank", json!(1 << 17)),
        ("qk_rope_head_dim", json!(64)),
        ("v_head_dim", json!("x")),
        ("index_n_heads", json!(1 << 17)),
        ("index_head_dim", json!(0)),
        ("index_topk", json!(1 << 21)),
        ("index_kpool", json!(3)),
        ("index_kpool", json!(1)),
        ("layer_types", Value::Null),
        ("layer_types", json!(["linear_attention"])),
        ("layer_types", json!(["linear_attention", "full_attention", "linear_attention"])),
        ("mlp_layer_types", json!(["dense", "sparse", "moe"])),
        ("mlp_layer_types", json!("sparse")),
        ("indexer_types", json!(["full", "shared", "full"])),
        ("linear_num_heads", json!(0)),
        ("linear_head_dim", json!(1 << 14)),
        ("linear_conv_kernel_dim", json!(1)),
        ("linear_lower_bound", json!(0.0)),
        ("linear_lower_bound", Value::Null),
        ("intermediate_size", Value::Null),
        ("moe_intermediate_size", json!(-1)),
        ("n_routed_experts", json!(0)),
        ("n_shared_experts", json!(0)),
        ("num_experts_per_tok", json!(9)),
        ("n_group", json!(3)),
        ("n_group", json!(8)),
        ("topk_group", json!(0)),
        ("routed_scaling_factor", json!(-1)),
        ("swiglu_limit", json!(0)),
        ("swiglu_limit", Value::Null),
        ("hc_mult", json!(65)),
        ("hc_eps", json!(2)),
        ("hc_sinkhorn_iters", json!(0)),
        ("rms_norm_eps", json!("small")),
        ("vocab_size", json!(1 << 22)),
        ("max_position_embeddings", json!(1u64 << 27)),
        ("linear_attn_config", json!(3)),
        ("linear_attn_config", json!({"num_heads": 2048, "head_dim": 1024})),
    ] {
        refused(key, value);
    }
}

/// Where the sizes of delta rule layers have an object of their own.
#[test]
fn products_of_sizes_are_bounded() {
    let own = |heads: u32, width: u32| {
        let object = json!({"num_heads": heads, "head_dim": width});
        let flat = [("linear_num_heads", Value::Null), ("linear_head_dim", Value::Null), ("linear_attn_config", object)];
        Config::read(&with(good(), &flat)).map(|_| ())
    };
    assert_eq!(own(1024, 256), Ok(()));
    assert!(own(1024, 512).unwrap_err().contains("`linear_attn_config` in `text_config` makes an accumulator of 268435456 numbers"));
    assert!(own(4096, 1024).unwrap_err().contains("`linear_attn_config` in `text_config` makes a row of 4194304 numbers"));
}

#[test]
fn every_bad_switch_and_place_is_named() {
    for (key, value) in [
        ("hidden_act", json!("gelu")),
        ("norm_topk_prob", json!(false)),
        ("scoring_func", json!("softmax")),
        ("topk_method", json!("greedy")),
        ("attention_bias", json!(true)),
        ("index_kpool_always_select_tail", json!(false)),
        ("index_kpool_compress", json!(false)),
        ("mla_use_nope", json!(false)),
        ("mhc", json!(false)),
        ("tie_word_embeddings", json!(1)),
    ] {
        refused(key, value);
    }
    for (key, value) in [("text_config", json!(3)), ("tie_word_embeddings", json!("no"))] {
        let mut json = good();
        json[key] = value;
        assert!(names_a_key(&Config::read(&json).unwrap_err(), &[key]), "{key}");
    }
    for (key, value) in
        [("num_heads", json!(0)), ("head_dim", json!("x")), ("short_conv_kernel_size", json!(1)), ("gate_lower_bound", json!(1))]
    {
        let place = format!("linear_attn_config.{key}");
        let error = Config::read(&with(good(), &[(&place, value)])).unwrap_err();
        assert!(error.starts_with(&format!("config.json: `{key}` in `linear_attn_config` is ")), "{error}");
    }
    for heads in [2048, 1024] {
        let flat = [("linear_num_heads", Value::Null), ("linear_head_dim", Value::Null)];
        let json = with(with(good(), &flat), &[("linear_attn_config", json!({"num_heads": heads, "head_dim": 1024}))]);
        let error = Config::read(&json).unwrap_err();
        assert!(error.starts_with("config.json: `linear_attn_config` in `text_config` makes a"), "{error}");
    }
    assert!(Config::read(&json!([])).is_err());
}

#[test]
fn sizes_that_are_there_twice_agree() {
    for (nested, value, flat) in [
        ("num_heads", json!(2), "linear_num_heads"),
        ("head_dim", json!(8), "linear_head_dim"),
        ("short_conv_kernel_size", json!(3), "linear_conv_kernel_dim"),
        ("gate_lower_bound", json!(-4.5), "linear_lower_bound"),
    ] {
        let place = format!("linear_attn_config.{nested}");
        let same = with(good(), &[(&place, good()["text_config"][flat].clone())]);
        assert_eq!(Config::read(&same).unwrap(), read(&[]));
        let error = Config::read(&with(good(), &[(&place, value.clone())])).unwrap_err();
        let expected = format!("config.json: `{flat}` in `text_config` is ");
        assert!(error.starts_with(&expected) && error.ends_with(&format!("`{nested}` in `linear_attn_config` is {value}")), "{error}");
    }
}

#[test]
fn no_more_is_chosen_than_a_full_context_has() {
    let chosen = |context: u32, topk: u32| read(&[("max_position_embeddings", json!(context)), ("index_topk", json!(topk))]).index.chosen;
    assert_eq!([chosen(512, 8), chosen(103, 1 << 20), chosen(4, 1 << 20), chosen(3, 1 << 20)], [8, 100, 4, 4]);
}

/// Describes and records with draft head and without.
fn use_of(config: &Config) -> Result<(), String> {
    for draft in [false, true] {
        let (model, description) = weights::describe(config, |_| draft);
        record_some(&description, |segment, recorder| forward::record(config, &model, segment, recorder))?;
    }
    Ok(())
}

#[test]
fn thousands_of_layers_and_the_largest_sizes_are_described() {
    let kinds: Vec<&str> = ["linear_attention", "deepseek_sparse_attention"].into_iter().cycle().take(4000).collect();
    let mut many = vec![("num_hidden_layers", json!(4000)), ("layer_types", json!(kinds)), ("mlp_layer_types", Value::Null)];
    many.push(("indexer_types", Value::Null));
    assert!(read(&many).layers.iter().all(|layer| layer.routed));
    use_of(&read(&many)).unwrap();
    many.push(("first_k_dense_replace", json!(4000)));
    use_of(&read(&many)).unwrap();
    let large = [
        ("hidden_size", json!(1 << 15)),
        ("hc_mult", json!(64)),
        ("num_attention_heads", json!(16)),
        ("kv_lora_rank", json!(COUNT_MAX)),
        ("qk_nope_head_dim", json!(COUNT_MAX)),
        ("v_head_dim", json!(COUNT_MAX)),
        ("index_n_heads", json!(32)),
        ("index_head_dim", json!(COUNT_MAX)),
        ("index_topk", json!(1 << 20)),
        ("index_kpool", json!(4096)),
        ("n_routed_experts", json!(COUNT_MAX)),
        ("n_group", json!(1024)),
        ("topk_group", json!(1024)),
        ("num_experts_per_tok", json!(1024)),
        ("n_shared_experts", json!(1024)),
        ("moe_intermediate_size", json!(2048)),
        ("linear_num_heads", json!(1024)),
        ("linear_head_dim", json!(256)),
        ("linear_conv_kernel_dim", json!(1024)),
    ];
    use_of(&read(&large)).unwrap();
}

/// How weights are stored is the host's matter.
#[test]
fn quantization_is_not_read() {
    let stored = json!({"quant_method": "fp8", "weight_block_size": [128, 128]});
    let mut json = good();
    (json["quantization_config"], json["text_config"]["quantization_config"]) = (stored.clone(), stored);
    Config::read(&json).unwrap();
}

const PLACES: [&str; 50] = [
    "tie_word_embeddings",
    "text_config",
    "text_config.hidden_size",
    "text_config.num_hidden_layers",
    "text_config.num_attention_heads",
    "text_config.q_lora_rank",
    "text_config.kv_lora_rank",
    "text_config.qk_nope_head_dim",
    "text_config.qk_rope_head_dim",
    "text_config.v_head_dim",
    "text_config.index_n_heads",
    "text_config.index_head_dim",
    "text_config.index_topk",
    "text_config.index_kpool",
    "text_config.layer_types",
    "text_config.mlp_layer_types",
    "text_config.first_k_dense_replace",
    "text_config.linear_num_heads",
    "text_config.linear_head_dim",
    "text_config.linear_conv_kernel_dim",
    "text_config.linear_lower_bound",
    "text_config.linear_attn_config",
    "text_config.linear_attn_config.num_heads",
    "text_config.linear_attn_config.head_dim",
    "text_config.linear_attn_config.short_conv_kernel_size",
    "text_config.linear_attn_config.gate_lower_bound",
    "text_config.intermediate_size",
    "text_config.moe_intermediate_size",
    "text_config.n_routed_experts",
    "text_config.n_shared_experts",
    "text_config.num_experts_per_tok",
    "text_config.n_group",
    "text_config.topk_group",
    "text_config.routed_scaling_factor",
    "text_config.swiglu_limit",
    "text_config.hc_mult",
    "text_config.hc_eps",
    "text_config.hc_sinkhorn_iters",
    "text_config.rms_norm_eps",
    "text_config.vocab_size",
    "text_config.max_position_embeddings",
    "text_config.hidden_act",
    "text_config.norm_topk_prob",
    "text_config.indexer_types",
    "text_config.scoring_func",
    "text_config.num_nextn_predict_layers",
    "text_config.topk_method",
    "text_config.index_kpool_compress",
    "text_config.mla_use_nope",
    "text_config.tie_word_embeddings",
];

const WORDS: [&str; 9] =
    ["silu", "full", "sigmoid", "noaux_tc", "linear_attention", "deepseek_sparse_attention", "indexed_attention", "dense", "sparse"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// What is read can be described and recorded.
    #[test]
    fn any_config_is_read_or_refused_by_key(numbers in prop::collection::vec(any::<u64>(), 1..8)) {
        let json = changed(&good(), &PLACES, &WORDS, &numbers);
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
