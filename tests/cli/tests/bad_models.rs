//! Models that are broken or lie: refused in one line, before memory or time is spent on them.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use coli_test_cli::{Run, copy_golden, edit, golden, says};
use serde_json::{Value, json};
use tempfile::TempDir;

const WEIGHTS: &str = "model.safetensors";

fn refusal(model: &Path) -> String {
    Run::coli(["eval", "logits", "--ids", "1,2", "--model"]).arg(model).finish().failed(3)
}

fn weights() -> Vec<u8> {
    fs::read(golden().join(WEIGHTS)).unwrap()
}

fn with_weights(bytes: &[u8]) -> TempDir {
    let model = copy_golden();
    fs::write(model.path().join(WEIGHTS), bytes).unwrap();
    model
}

fn with_config(change: impl FnOnce(&mut Value)) -> TempDir {
    let model = copy_golden();
    edit(&model.path().join("config.json"), change);
    model
}

/// The bytes with another header length in front.
fn claiming(len: u64) -> Vec<u8> {
    let mut bytes = weights();
    bytes[..8].copy_from_slice(&len.to_le_bytes());
    bytes
}

/// The golden model's header, changed, with its tensors behind it.
fn with_header(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let bytes = weights();
    let len = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + len]).unwrap();
    change(&mut header);
    let header = header.to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &bytes[8 + len..]].concat()
}

#[test]
fn the_copy_that_these_tests_change_is_a_good_model() {
    let model = copy_golden();
    Run::coli(["eval", "logits", "--ids", "1,2", "--model"]).arg(model.path()).finish().succeeded();
    Run::coli(["eval", "logits", "--ids", "1,2", "--model"]).arg(with_weights(&with_header(|_| ())).path()).finish().succeeded();
}

/// The parser of a plugin has a bound too, and would be blamed.
#[test]
fn a_config_that_is_nested_too_deep_is_refused_by_the_files_name() {
    let config = |levels: usize| with_config(|config| config["x"] = (1..levels).fold(json!([]), |inner, _| json!([inner])));
    for levels in [64, 100, 124] {
        let error = refusal(config(levels).path());
        says(&error, &["config.json`", "nested"]);
        assert!(!error.contains("plugin"), "{error}");
    }
    Run::coli(["eval", "logits", "--ids", "1", "--model"]).arg(config(60).path()).finish().succeeded();
}

#[test]
fn a_truncated_file_is_refused_at_every_length() {
    let bytes = weights();
    for len in [0, 1, 7, 8, 9, 4000, bytes.len() / 2, bytes.len() - 1] {
        says(&refusal(with_weights(&bytes[..len]).path()), &[WEIGHTS, "bytes"]);
    }
}

#[test]
fn bytes_that_belong_to_no_tensor_are_refused() {
    let mut bytes = weights();
    bytes.push(0);
    says(&refusal(with_weights(&bytes).path()), &[WEIGHTS]);
}

#[test]
fn a_header_length_that_lies_is_refused() {
    let len = weights().len() as u64;
    for claim in [0, 1, 100, len - 8, len - 7, 1 << 40, i64::MAX as u64, u64::MAX - 7, u64::MAX] {
        says(&refusal(with_weights(&claiming(claim)).path()), &[WEIGHTS]);
    }
}

#[test]
fn a_header_that_lies_about_its_tensors_is_refused() {
    const NORM: &str = "model.norm.weight";
    let changes: [fn(&mut Value); 7] = [
        |header| header[NORM]["data_offsets"] = json!([0, u64::MAX]),
        |header| header[NORM]["data_offsets"] = json!([u64::MAX, 0]),
        |header| header[NORM]["data_offsets"] = json!([0, 128]),
        |header| header[NORM]["shape"] = json!([u64::MAX, 2]),
        |header| header[NORM]["shape"] = json!([65]),
        |header| header[NORM]["dtype"] = json!("F99"),
        |header| *header = json!([]),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let error = refusal(with_weights(&with_header(change)).path());
        assert!(error.contains(WEIGHTS), "change {index}: {error}");
    }
}

#[test]
fn a_missing_tensor_is_refused_by_name() {
    const NORM: &str = "model.norm.weight";
    let bytes = with_header(|header| {
        let norm = header.as_object_mut().unwrap().remove(NORM).unwrap();
        header["model.norm.bias"] = norm;
    });
    says(&refusal(with_weights(&bytes).path()), &[NORM, "not stored"]);
}

#[test]
fn a_shape_that_disagrees_with_the_config_is_refused_with_both_shapes() {
    let cases = [
        ("vocab_size", 300, "model.embed_tokens.weight", "[256, 64]", "[300, 64]"),
        ("hidden_size", 128, "model.embed_tokens.weight", "[256, 64]", "[256, 128]"),
        ("intermediate_size", 48, "model.layers.0.mlp.experts.0.gate_proj.weight", "[32, 64]", "[48, 64]"),
        ("num_experts", 9, "model.layers.0.mlp.gate.weight", "[8, 64]", "[9, 64]"),
        ("num_key_value_heads", 2, "model.layers.0.self_attn.k_proj.weight", "[64, 64]", "[32, 64]"),
    ];
    for (key, value, tensor, stored, expected) in cases {
        let model = with_config(|config| config[key] = json!(value));
        says(&refusal(model.path()), &[tensor, stored, expected]);
    }
}

#[test]
fn a_stored_shape_that_disagrees_with_the_config_is_refused_with_both_shapes() {
    let bytes = with_header(|header| header["lm_head.weight"]["shape"] = json!([64, 256]));
    says(&refusal(with_weights(&bytes).path()), &["lm_head.weight", "[64, 256]", "[256, 64]"]);
}

#[test]
fn a_type_that_is_not_served_is_refused_with_those_that_are() {
    let bytes = with_header(|header| {
        header["model.norm.weight"]["dtype"] = json!("I8");
        header["model.norm.weight"]["shape"] = json!([128]);
    });
    says(&refusal(with_weights(&bytes).path()), &["model.norm.weight", "i8", "bf16"]);
}

#[test]
fn a_shard_that_the_index_names_and_nobody_has_is_refused_by_name() {
    let model = copy_golden();
    fs::rename(model.path().join(WEIGHTS), model.path().join("model-00001-of-00002.safetensors")).unwrap();
    let index = json!({"weight_map": {"lm_head.weight": "model-00001-of-00002.safetensors", "x": "model-00002-of-00002.safetensors"}});
    fs::write(model.path().join("model.safetensors.index.json"), index.to_string()).unwrap();
    says(&refusal(model.path()), &["model-00002-of-00002.safetensors", "missing"]);
}

#[test]
fn an_index_that_leads_out_of_the_folder_is_refused() {
    let model = copy_golden();
    fs::remove_file(model.path().join(WEIGHTS)).unwrap();
    let elsewhere = golden().join(WEIGHTS);
    for shard in [elsewhere.to_str().unwrap(), "../model.safetensors", ""] {
        let index = json!({"weight_map": {"lm_head.weight": shard}});
        fs::write(model.path().join("model.safetensors.index.json"), index.to_string()).unwrap();
        says(&refusal(model.path()), &["model.safetensors.index.json", "lm_head.weight"]);
    }
}

#[test]
fn a_config_that_is_garbage_is_refused_by_name() {
    let model = copy_golden();
    let deep = "[".repeat(100_000);
    for text in ["", "garbage", "[]", "null", "{\"model_type\":", "\u{0}", &deep] {
        fs::write(model.path().join("config.json"), text).unwrap();
        says(&refusal(model.path()), &["config.json"]);
    }
    fs::write(model.path().join("config.json"), b"\xff\xfe{}").unwrap();
    says(&refusal(model.path()), &["config.json"]);
}

#[test]
fn a_config_without_a_model_type_is_refused() {
    for value in [Value::Null, json!(3), json!(["olmoe"])] {
        says(&refusal(with_config(|config| config["model_type"] = value).path()), &["config.json", "model_type"]);
    }
    let model = with_config(|config| {
        config.as_object_mut().unwrap().remove("model_type");
    });
    says(&refusal(model.path()), &["config.json", "model_type"]);
}

#[test]
fn a_config_with_absurd_sizes_is_refused_by_key() {
    let keys = ["hidden_size", "num_hidden_layers", "num_attention_heads", "num_experts", "vocab_size", "max_position_embeddings"];
    for key in keys {
        for value in [json!(0), json!(4_000_000_000u64), json!(u64::MAX), json!(-1), json!(1.5), json!("many"), json!([])] {
            let model = with_config(|config| config[key] = value.clone());
            let error = refusal(model.path());
            assert!(error.contains(key), "{key} = {value}: {error}");
        }
    }
}

/// Sizes that each are possible and together are not: whatever is refused first, nothing of that size is allocated before.
#[test]
fn a_config_of_the_largest_possible_sizes_is_refused() {
    let model = with_config(|config| {
        for (key, value) in [("num_hidden_layers", 4000), ("num_experts", 65536), ("num_experts_per_tok", 1024), ("vocab_size", 1 << 21)] {
            config[key] = json!(value);
        }
    });
    says(&refusal(model.path()), &["tensor"]);
}

#[test]
fn a_model_whose_numbers_are_not_finite_is_an_error_and_no_panic() {
    let mut bytes = weights();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    bytes[header..].fill(0xff);
    let model = with_weights(&bytes);
    let error = Run::coli(["eval", "logits", "--ids", "1,2", "--model"]).arg(model.path()).finish().failed(1);
    says(&error, &["not finite"]);
}
