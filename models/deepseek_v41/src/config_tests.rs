//! What is read of `config.json`, what is refused, and that all that is read can be described and recorded.

use super::*;
use crate::engram::Engram;
use crate::{forward, weights};
use coli_blocks::testing::{any_json, changed, names_a_key, put, record_some};
use coli_plugin_api::describe::TensorFact;
use proptest::prelude::*;

fn good() -> Value {
    let tables = json!({
        "engram_layer_ids": [1, 4], "engram_max_ngram_size": 3, "engram_vocab_size": 20, "engram_n_heads": 4, "engram_head_dim": 8,
        "engram_pad_token_id": 2, "engram_compressed_vocab_size": 8
    });
    let mut json = without_tables();
    json["text_config"].as_object_mut().unwrap().extend(tables.as_object().unwrap().clone());
    json
}

fn without_tables() -> Value {
    let attention = json!({
        "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 32, "qk_rope_head_dim": 8, "q_lora_rank": 32, "o_lora_rank": 16,
        "o_groups": 2, "sliding_window": 8, "rope_theta": 10000, "compress_rope_theta": 160000, "compress_ratios": [0, 0, 2, 2, 1, 1],
        "rope_scaling": {"rope_type": "yarn", "factor": 4, "beta_fast": 32, "beta_slow": 1, "original_max_position_embeddings": 64},
        "kv_source_layer_ids": [2, 4], "index_source_layer_ids": [2, 4, 5], "candidate_source_layer_id": 4, "candidate_topk_blocks": 3,
        "candidate_block_size": 4, "index_n_heads": 16, "index_head_dim": 32, "index_topk": 6
    });
    let mut text = json!({
        "hidden_size": 64, "num_hidden_layers": 6, "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2,
        "moe_intermediate_size": 32, "routed_scaling_factor": 1.5, "swiglu_limit": 1.0, "hc_mult": 4, "hc_eps": 1e-6,
        "hc_sinkhorn_iters": 20, "rms_norm_eps": 1e-20, "vocab_size": 256, "max_position_embeddings": 512, "hidden_act": "silu",
        "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc", "norm_topk_prob": true
    });
    text.as_object_mut().unwrap().extend(attention.as_object().unwrap().clone());
    json!({"model_type": "deepseek_v41", "image_token_id": 254, "tie_word_embeddings": false, "text_config": text})
}

/// Changes keys of `text_config`.
fn with(mut json: Value, changes: &[(&str, Value)]) -> Value {
    changes.iter().for_each(|(key, value)| put(&mut json, &format!("text_config.{key}"), value.clone()));
    json
}

fn read(changes: &[(&str, Value)]) -> Config {
    Config::read(&with(good(), changes)).unwrap()
}

/// What the plugin does when it is opened with a tokenizer of eight texts, and then when it records.
fn use_of(config: &Config) -> Result<(), String> {
    let texts: Vec<Option<String>> = ('a'..='h').map(|letter| Some(letter.into())).collect();
    let engram = config.engram.as_ref().map(|engram| Engram::new(engram, &texts)).transpose()?;
    let (model, description) = weights::describe(config, |layer| engram.as_ref().map_or(0, |engram| engram.rows(layer)))?;
    record_some(&description, |segment, recorder| forward::record(config, &model, segment, recorder)).unwrap();
    let Some(engram) = engram else { return Ok(()) };
    for kind in config.layers.iter().filter_map(|layer| layer.table).take(2) {
        let ids = engram.ids(kind, &[7, 0, 3]).unwrap();
        let rows = engram.rows(kind) as i64;
        assert!(ids.iter().all(|id| (0..rows).contains(id)), "{ids:?} of {rows}");
    }
    Ok(())
}

#[test]
fn keys_are_read_where_either_generation_has_them() {
    let shown = |config: Config| format!("{config:?}");
    let config = shown(read(&[]));
    let mut json = good()["text_config"].clone();
    json["image_token_id"] = json!(254);
    assert_eq!(shown(Config::read(&json).unwrap()), config);
    let mut json = with(good(), &[("image_token_id", json!(254))]);
    json["image_token_id"] = Value::Null;
    assert_eq!(shown(Config::read(&json).unwrap()), config);
    let older = [("rope_scaling.rope_type", Value::Null), ("rope_scaling.type", json!("yarn"))];
    assert_eq!(shown(read(&older)), config);
    // Draft layers follow the model's own.
    assert_eq!(shown(read(&[("compress_ratios", json!([0, 0, 2, 2, 1, 1, 0, 0]))])), config);
    let drafts = [("num_nextn_predict_layers", json!(2)), ("compress_ratios", json!([0, 0, 2, 2, 1, 1, 1, 1]))];
    let named = [("kv_source_layer_ids", json!([2, 4, 6])), ("index_source_layer_ids", json!([2, 4, 5, 6, 7]))];
    assert_eq!(shown(read(&[drafts, named].concat())), config);
}

#[test]
fn no_more_is_chosen_than_a_full_context_has() {
    let absurd = read(&[
        ("index_topk", json!(1 << 20)),
        ("candidate_topk_blocks", json!(1 << 20)),
        ("candidate_block_size", json!(5)),
        ("max_position_embeddings", json!(101)),
    ]);
    assert_eq!([1, 2, 101, 4096].map(|ratio| absurd.chosen(ratio)), [101, 50, 1, 1]);
    assert_eq!([1, 2, 101, 4096].map(|ratio| absurd.candidates(ratio)), [(5, 21), (5, 10), (1, 1), (1, 1)]);
    assert_eq!((read(&[]).chosen(2), read(&[]).candidates(1)), (6, (4, 3)));
    use_of(&absurd).unwrap();
}

#[test]
fn norms_of_streams_are_stored_as_a_row_for_each() {
    let config = read(&[]);
    let check = |name: &str, shape: &[u64]| {
        weights::check_norms(&config, &[TensorFact { name: name.into(), shape: shape.into(), kind: "f32".into() }])
    };
    for name in ["layers.1.engram.q_weight", "layers.4.engram.k_weight"] {
        assert_eq!(check(name, &[4, 64]), Ok(()));
        for shape in [&[64, 4][..], &[256], &[1, 256], &[4, 64, 1]] {
            assert_eq!(check(name, shape), Err(format!("tensor `{name}` is {shape:?}, the plugin expects [4, 64]")));
        }
    }
    assert_eq!(check("layers.0.engram.q_weight", &[256]), Ok(()));
}

#[test]
fn layers_share_rows_and_lists() {
    let kinds = |changes: &[(&str, Value)]| {
        let of = |layer: &LayerKind| layer.compressed.map(|kind| (kind.source, kind.ratio, kind.chooses, kind.candidates));
        read(changes).layers.iter().map(of).collect::<Vec<_>>()
    };
    let (no, gives, takes) = (Candidates::No, Candidates::Gives, Candidates::Takes);
    let expected = [None, None, Some((2, 2, true, no)), Some((2, 2, false, no)), Some((4, 1, true, gives)), Some((4, 1, true, takes))];
    assert_eq!(kinds(&[]), expected);
    let without = kinds(&[("candidate_source_layer_id", Value::Null)]);
    assert_eq!(without[4..], [Some((4, 1, true, no)), Some((4, 1, true, no))]);
    assert!(Config::read(&without_tables()).unwrap().layers.iter().all(|layer| layer.table.is_none()));
    assert_eq!(read(&[("engram_layer_ids", json!([]))]).layers[1].table, None);
    assert_eq!(read(&[]).layers.iter().map(|layer| layer.table).collect::<Vec<_>>(), [None, Some(0), None, None, Some(1), None]);
}

fn refused(key: &str, value: Value) {
    // Five lengths of n-grams, so that many heads are too many.
    let json = with(good(), &[("engram_max_ngram_size", json!(6)), (key, value.clone())]);
    let error = Config::read(&json).unwrap_err();
    assert!(names_a_key(&error, &[key]), "{key} = {value}: {error}");
}

#[test]
fn every_bad_key_of_attention_is_named() {
    for (key, value) in [
        ("hidden_size", json!(0)),
        ("hidden_size", json!(u64::MAX)),
        ("num_hidden_layers", json!(5000)),
        ("num_attention_heads", json!(0)),
        ("num_key_value_heads", json!(2)),
        ("head_dim", json!(1 << 20)),
        ("qk_rope_head_dim", json!(7)),
        ("qk_rope_head_dim", json!(34)),
        ("q_lora_rank", Value::Null),
        ("o_lora_rank", json!(0)),
        ("o_groups", json!(3)),
        ("sliding_window", json!(1)),
        ("rope_theta", json!(0.5)),
        ("compress_rope_theta", json!(1)),
        ("compress_ratios", Value::Null),
        ("compress_ratios", json!([0, 0])),
        ("compress_ratios", json!([0, 0, 2, 1, 1, 1])),
        ("kv_source_layer_ids", json!([4])),
        ("kv_source_layer_ids", json!("x")),
        ("index_source_layer_ids", json!([4, 5])),
        ("index_source_layer_ids", json!([1, 2, 4])),
        ("index_source_layer_ids", json!([2, 4, 9])),
        ("candidate_source_layer_id", json!(-1)),
        ("candidate_source_layer_id", json!(3)),
        ("candidate_source_layer_id", json!(3)),
        ("candidate_source_layer_id", json!(6)),
        ("kv_source_layer_ids", json!([2, 4, 6])),
        ("kv_source_layer_ids", json!([0, 2, 4])),
        ("index_source_layer_ids", json!([2, 4, 5, 4000])),
        ("index_source_layer_ids", json!([1, 2, 4, 5])),
        ("engram_layer_ids", json!([1, 6])),
        ("num_nextn_predict_layers", json!(-1)),
        ("n_group", json!(2)),
        ("topk_group", json!(2)),
        ("candidate_topk_blocks", json!(0)),
        ("candidate_block_size", json!(0)),
        ("rope_scaling", Value::Null),
        ("rope_scaling", json!([])),
        ("index_n_heads", json!(1 << 17)),
        ("index_head_dim", json!(4)),
        ("index_topk", json!(1 << 21)),
    ] {
        refused(key, value);
    }
}

#[test]
fn every_other_bad_key_is_named() {
    for (key, value) in [
        ("n_routed_experts", json!(0)),
        ("n_shared_experts", json!(0)),
        ("num_experts_per_tok", json!(9)),
        ("moe_intermediate_size", json!(-1)),
        ("routed_scaling_factor", json!("x")),
        ("swiglu_limit", Value::Null),
        ("hc_mult", json!(65)),
        ("hc_eps", json!(2)),
        ("hc_sinkhorn_iters", json!(0)),
        ("rms_norm_eps", json!(-1)),
        ("vocab_size", json!(0)),
        ("max_position_embeddings", json!(0)),
        ("engram_layer_ids", json!([1, 1])),
        ("engram_layer_ids", json!(1)),
        ("engram_layer_ids", json!([1, 6])),
        ("engram_max_ngram_size", json!(1)),
        ("engram_max_ngram_size", json!(65)),
        ("engram_vocab_size", json!(0)),
        ("engram_n_heads", json!(1024)),
        ("engram_n_heads", json!(3000)),
        ("engram_head_dim", json!(COUNT_MAX + 1)),
        ("engram_pad_token_id", Value::Null),
        ("engram_compressed_vocab_size", json!(0)),
        ("hidden_act", json!("gelu")),
        ("scoring_func", json!("sigmoid")),
        ("topk_method", json!("greedy")),
        ("norm_topk_prob", json!(false)),
        ("attention_bias", json!(true)),
        ("tie_word_embeddings", json!(true)),
    ] {
        refused(key, value);
    }
    assert!(Config::read(&json!([])).is_err());
}

#[test]
fn bad_keys_in_other_places_are_named() {
    for (key, value) in [
        ("rope_type", json!("linear")),
        ("type", json!("linear")),
        ("factor", json!(0.5)),
        ("original_max_position_embeddings", json!(0)),
        ("beta_fast", json!(0.5)),
        ("beta_slow", json!(0)),
    ] {
        let error = Config::read(&with(good(), &[(&format!("rope_scaling.{key}"), value)])).unwrap_err();
        assert!(error.starts_with(&format!("config.json: `{key}` in `rope_scaling` ")), "{error}");
    }
    for (key, value) in [("text_config", json!(3)), ("image_token_id", json!(-1)), ("tie_word_embeddings", json!(true))] {
        let mut json = good();
        json[key] = value;
        assert!(names_a_key(&Config::read(&json).unwrap_err(), &[key]), "{key}");
    }
}

#[test]
fn settings_of_the_tables_that_do_not_fit_the_tokenizer_or_ids_are_refused_by_key() {
    for (key, value) in [
        ("engram_pad_token_id", json!(8)),
        ("engram_compressed_vocab_size", json!(7)),
        ("engram_vocab_size", json!(u32::MAX)),
        ("engram_vocab_size", json!(1u64 << 31)),
    ] {
        let error = use_of(&read(&[(key, value)])).unwrap_err();
        assert!(names_a_key(&error, &[key]), "{key}: {error}");
    }
}

#[test]
fn thousands_of_layers_and_the_largest_sizes_are_described() {
    let all: Vec<u32> = (0..4000).collect();
    let many = |ratio: u32| {
        let owners = if ratio == 0 { json!([]) } else { json!(all) };
        [
            ("num_hidden_layers", json!(4000)),
            ("compress_ratios", json!(vec![ratio; 4000])),
            ("kv_source_layer_ids", owners.clone()),
            ("index_source_layer_ids", owners),
            ("candidate_source_layer_id", Value::Null),
            ("engram_layer_ids", json!(all)),
        ]
    };
    for ratio in [0, 1, 4096] {
        use_of(&read(&many(ratio))).unwrap();
    }
    // As many tables as there may be, and more.
    let tables = |layers: u32| {
        let own = [
            ("engram_layer_ids", json!((0..layers).collect::<Vec<u32>>())),
            ("engram_max_ngram_size", json!(32)),
            ("engram_n_heads", json!(64)),
            ("engram_head_dim", json!(512)),
        ];
        use_of(&read(&[&many(0)[..], &own].concat()))
    };
    tables(33).unwrap();
    assert!(names_a_key(&tables(34).unwrap_err(), &["engram_n_heads"]));
    let large = [
        ("hidden_size", json!(1 << 15)),
        ("hc_mult", json!(63)),
        ("num_attention_heads", json!(32)),
        ("head_dim", json!(COUNT_MAX)),
        ("qk_rope_head_dim", json!(COUNT_MAX)),
        ("index_head_dim", json!(COUNT_MAX)),
        ("o_lora_rank", json!(COUNT_MAX)),
        ("o_groups", json!(32)),
        ("index_topk", json!(1 << 20)),
        ("candidate_topk_blocks", json!(1 << 20)),
        ("candidate_block_size", json!(1 << 20)),
        ("n_routed_experts", json!(COUNT_MAX)),
        ("num_experts_per_tok", json!(1024)),
        ("n_shared_experts", json!(1024)),
        ("moe_intermediate_size", json!(2048)),
        ("sliding_window", json!(CONTEXT_MAX)),
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

const PLACES: [&str; 59] = [
    "tie_word_embeddings",
    "image_token_id",
    "text_config",
    "text_config.hidden_size",
    "text_config.num_hidden_layers",
    "text_config.num_attention_heads",
    "text_config.num_key_value_heads",
    "text_config.head_dim",
    "text_config.qk_rope_head_dim",
    "text_config.q_lora_rank",
    "text_config.o_lora_rank",
    "text_config.o_groups",
    "text_config.sliding_window",
    "text_config.rope_theta",
    "text_config.compress_rope_theta",
    "text_config.compress_ratios",
    "text_config.kv_source_layer_ids",
    "text_config.index_source_layer_ids",
    "text_config.candidate_source_layer_id",
    "text_config.candidate_topk_blocks",
    "text_config.candidate_block_size",
    "text_config.rope_scaling",
    "text_config.rope_scaling.rope_type",
    "text_config.rope_scaling.type",
    "text_config.rope_scaling.factor",
    "text_config.rope_scaling.beta_fast",
    "text_config.rope_scaling.beta_slow",
    "text_config.rope_scaling.original_max_position_embeddings",
    "text_config.index_n_heads",
    "text_config.index_head_dim",
    "text_config.index_topk",
    "text_config.n_routed_experts",
    "text_config.n_shared_experts",
    "text_config.num_experts_per_tok",
    "text_config.moe_intermediate_size",
    "text_config.routed_scaling_factor",
    "text_config.swiglu_limit",
    "text_config.hc_mult",
    "text_config.hc_eps",
    "text_config.hc_sinkhorn_iters",
    "text_config.rms_norm_eps",
    "text_config.vocab_size",
    "text_config.max_position_embeddings",
    "text_config.engram_layer_ids",
    "text_config.engram_max_ngram_size",
    "text_config.engram_vocab_size",
    "text_config.engram_n_heads",
    "text_config.engram_head_dim",
    "text_config.engram_pad_token_id",
    "text_config.engram_compressed_vocab_size",
    "text_config.hidden_act",
    "text_config.scoring_func",
    "text_config.n_group",
    "text_config.topk_group",
    "text_config.num_nextn_predict_layers",
    "text_config.topk_method",
    "text_config.norm_topk_prob",
    "text_config.attention_bias",
    "text_config.tie_word_embeddings",
];

const WORDS: [&str; 4] = ["silu", "sqrtsoftplus", "noaux_tc", "yarn"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// What is read can be described and recorded, but for tables that the tokenizer does not fit.
    #[test]
    fn any_config_is_read_or_refused_by_key(numbers in prop::collection::vec(any::<u64>(), 1..8)) {
        let json = changed(&good(), &PLACES, &WORDS, &numbers);
        let used = Config::read(&json).and_then(|config| use_of(&config));
        prop_assert!(used.as_ref().err().is_none_or(|error| names_a_key(error, &PLACES)), "{:?}: {}", used, json);
    }

    #[test]
    fn any_json_is_read_or_refused(numbers in prop::collection::vec(any::<u64>(), 1..40)) {
        let _ = Config::read(&any_json(&PLACES, &WORDS, &numbers));
    }
}
