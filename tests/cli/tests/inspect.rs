//! `coli inspect`: what a model is and lacks, be it served or not.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;

use coli_test_cli::{Run, copy_demo, fresh, golden_gguf, says};
use coli_test_common::built;
use serde_json::{Value, json};

fn inspect(model: &str) -> Value {
    Run::coli(["inspect", model, "--json"]).finish().json()
}

fn golden(name: &str) -> PathBuf {
    built::root().join("models/olmoe/golden").join(name)
}

fn role<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["roles"].as_array().unwrap().iter().find(|role| role["role"] == name).unwrap()
}

#[test]
fn the_demo_model_is_shown() {
    let report = inspect(built::demo().to_str().unwrap());
    let geometry = json!({
        "layers": 6, "hidden": 256, "heads": 4, "kv_heads": 4, "experts": 16, "experts_used": 4, "vocab": 4096, "context": 2048
    });
    assert_eq!((&report["architecture"], &report["container"], &report["geometry"]), (&json!("olmoe"), &json!("hf"), &geometry));
    assert_eq!((&report["plugin"]["id"], &report["missing"], &report["unread_types"]), (&json!("olmoe"), &json!([]), &json!([])));
    // 16 experts of 3 matrices of 128 times 256 in bf16 in each of 6 layers; a token reads a quarter of them, and one row of the embedding.
    let experts = 6 * 16 * 3 * 128 * 256 * 2;
    assert_eq!(role(&report, "routed_experts")["types"], json!({"bf16": {"tensors": 288, "bytes": experts}}));
    let bytes = report["bytes"].as_u64().unwrap();
    assert_eq!(report["token_bytes"], bytes - experts / 4 * 3 - 4095 * 256 * 2);
    let total: u64 = report["roles"].as_array().unwrap().iter().map(|role| role["bytes"].as_u64().unwrap()).sum();
    assert_eq!(total, bytes);
    let text = Run::coli(["inspect", built::demo().to_str().unwrap()]).finish().succeeded().stdout;
    says(
        &text,
        &[
            "architecture  olmoe",
            "layers 6, hidden 256",
            "routed experts      288    18.0 MiB  bf16",
            "plugin olmoe",
            "missing       nothing",
        ],
    );
}

#[test]
fn a_gguf_file_is_shown_as_its_folder_is() {
    let (folder, file) = (inspect(golden("olmoe").to_str().unwrap()), inspect(golden_gguf().to_str().unwrap()));
    assert_eq!((&file["container"], &file["architecture"]), (&json!("gguf"), &json!("olmoe")));
    assert_eq!((&folder["geometry"], &folder["plugin"]), (&file["geometry"], &file["plugin"]));
    assert_eq!((&folder["missing"], &file["missing"]), (&json!(["tokenizer.json"]), &json!([])));
    for name in ["embedding", "attention", "routed_experts", "norms"] {
        // The converter writes vectors as f32.
        let numbers = |report: &Value| -> u64 {
            let types = role(report, name)["types"].as_object().unwrap();
            types.iter().map(|(kind, figures)| figures["bytes"].as_u64().unwrap() / if kind == "f32" { 4 } else { 2 }).sum()
        };
        assert_eq!(numbers(&folder), numbers(&file), "{name}");
    }
}

#[test]
fn what_is_not_served_and_not_whole_is_shown_too() {
    let dir = fresh();
    copy_demo(dir.path());
    fs::write(dir.path().join("config.json"), r#"{"model_type":"unheard_of","num_hidden_layers":6}"#).unwrap();
    fs::remove_file(dir.path().join("tokenizer.json")).unwrap();
    fs::rename(dir.path().join("model.safetensors"), dir.path().join("one.safetensors")).unwrap();
    let index = json!({"weight_map": {"lm_head.weight": "one.safetensors", "x": "two.safetensors"}});
    fs::write(dir.path().join("model.safetensors.index.json"), index.to_string()).unwrap();
    let path = dir.path().to_str().unwrap();
    let report = inspect(path);
    assert_eq!((&report["plugin"], &report["token_bytes"], &report["tensors"]), (&json!(null), &json!(null), &json!(345)));
    assert_eq!(report["missing"], json!(["two.safetensors", "tokenizer.json"]));
    assert_eq!((&report["geometry"]["layers"], &report["geometry"]["experts"]), (&json!(6), &json!(null)));
    let text = Run::coli(["inspect", path]).finish().succeeded().stdout;
    says(&text, &["not served", "unheard_of", "olmoe", "a token reads", " unknown\n", "missing       two.safetensors"]);
}

#[test]
fn what_is_no_model_is_refused() {
    let dir = fresh();
    let path = dir.path().to_str().unwrap();
    says(&Run::coli(["inspect", path]).finish().failed(3), &["is no model", "or a GGUF file"]);
    says(&Run::coli(["inspect", &format!("{path}/none")]).finish().failed(3), &["does not exist"]);
    fs::write(dir.path().join("x.gguf"), "GGUF\u{3}").unwrap();
    says(&Run::coli(["inspect", &format!("{path}/x.gguf")]).finish().failed(3), &["x.gguf`: not a GGUF file"]);
    says(&Run::coli(["inspect", path]).finish().failed(3), &["x.gguf` is one"]);
    Run::coli(["inspect"]).finish().failed(2);
}
