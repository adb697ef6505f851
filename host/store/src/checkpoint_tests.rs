//! Folders of safetensors: what is read, and every refusal.

use super::*;
use crate::testing::{Stored, model, save};
use coli_base::Kind;
use safetensors::Dtype;
use serde_json::json;
use tempfile::TempDir;

/// A folder with two shards: `a` in the first, `b` and `c` in the second.
fn shards() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.json"), "{}").unwrap();
    save(&dir.path().join("one.safetensors"), &[Stored::f32("a", &[2])]);
    save(&dir.path().join("two.safetensors"), &[Stored::bf16("b", &[2]), Stored::bf16("c", &[1])]);
    dir
}

fn with_index(dir: &TempDir, map: Value) -> Result<Checkpoint> {
    std::fs::write(dir.path().join(INDEX), json!({ "weight_map": map }).to_string()).unwrap();
    open(dir.path())
}

fn refusal(result: Result<Checkpoint>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind, Kind::Refused);
    error.text
}

#[test]
fn a_single_file_is_a_model() {
    let dir = model(&[Stored::bf16("w", &[2, 3]), Stored::raw("q", Dtype::I8, &[3], vec![0; 3])]);
    save(&dir.path().join("extra.safetensors"), &[Stored::f32("other", &[1])]);
    std::fs::write(dir.path().join("generation_config.json"), r#"{"eos_token_id":0}"#).unwrap();
    let checkpoint = open(dir.path()).unwrap();
    assert_eq!(checkpoint.model_type().unwrap(), "test");
    assert_eq!(checkpoint.dir(), dir.path());
    let facts: Vec<_> = checkpoint.facts().into_iter().map(|fact| (fact.name, fact.kind, fact.shape)).collect();
    assert_eq!(facts, [("q".into(), "i8".into(), vec![3]), ("w".into(), "bf16".into(), vec![2, 3])]);
    assert_eq!(checkpoint.tensors()[1].bytes, 12);
    assert_eq!(checkpoint.optional_object("generation_config.json").unwrap(), Some(json!({"eos_token_id": 0})));
    assert_eq!(checkpoint.optional_object("none.json").unwrap(), None);
    for other in ["[]", "null", "3", "\"x\""] {
        std::fs::write(dir.path().join("other.json"), other).unwrap();
        let error = checkpoint.optional_object("other.json").unwrap_err();
        assert!(error.kind == Kind::Refused && error.text.ends_with("other.json` is not a JSON object"), "{error}");
    }
}

#[test]
fn shards_need_no_index() {
    let dir = shards();
    let names = |checkpoint: Checkpoint| checkpoint.tensors().iter().map(|t| t.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(open(dir.path()).unwrap()), ["a", "b", "c"]);
    // With an index, the folder's other files are not the model's.
    save(&dir.path().join("three.safetensors"), &[Stored::f32("a", &[2])]);
    let map = json!({"a": "one.safetensors", "b": "two.safetensors", "c": "two.safetensors"});
    assert_eq!(names(with_index(&dir, map).unwrap()), ["a", "b", "c"]);
}

#[test]
fn a_duplicate_names_both_files() {
    let dir = shards();
    save(&dir.path().join("three.safetensors"), &[Stored::f32("a", &[2])]);
    let text = refusal(open(dir.path()));
    assert!(text.contains("`a`") && text.contains("one.safetensors") && text.contains("three.safetensors"), "{text}");
}

#[test]
fn a_false_index_is_refused() {
    let dir = shards();
    let text = refusal(with_index(&dir, json!({"a": "one.safetensors", "d": "four.safetensors"})));
    assert!(text.contains("four.safetensors` is missing"), "{text}");
    let text = refusal(with_index(&dir, json!({"a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors"})));
    assert!(text.contains("`b` should be in `one.safetensors`") && text.contains("two.safetensors"), "{text}");
    let text = refusal(with_index(&dir, json!({"a": "one.safetensors", "d": "one.safetensors"})));
    assert!(text.contains("`d`") && text.contains("no shard"), "{text}");
    for bad in [json!({}), json!([]), json!({"a": 3}), json!({"a": "../one.safetensors"}), json!({"a": ""}), json!({"a": "/x"})] {
        assert!(refusal(with_index(&dir, bad)).contains("weight_map"));
    }
    std::fs::write(dir.path().join(INDEX), "{").unwrap();
    assert!(refusal(open(dir.path())).contains(INDEX));
}

#[test]
fn what_is_missing_is_named() {
    let dir = tempfile::tempdir().unwrap();
    assert!(refusal(open(&dir.path().join("none"))).contains("does not exist; a model is a folder with config.json"));
    assert!(refusal(open(dir.path())).contains("config.json` is missing"));
    for (text, says) in [("[]", "object"), ("{", "EOF"), ("", "EOF")] {
        std::fs::write(dir.path().join("config.json"), text).unwrap();
        let refused = refusal(open(dir.path()));
        assert!(refused.contains("config.json") && refused.contains(says), "{refused}");
    }
    std::fs::write(dir.path().join("config.json"), "{}").unwrap();
    assert!(refusal(open(dir.path())).contains("no *.safetensors"));
    assert!(refusal(open(&dir.path().join("config.json"))).contains("is not a folder"));
    std::fs::write(dir.path().join("x.gguf"), "").unwrap();
    assert!(refusal(open(&dir.path().join("x.gguf"))).contains("not a GGUF file"));
    std::fs::remove_file(dir.path().join("config.json")).unwrap();
    assert!(refusal(open(dir.path())).ends_with("x.gguf` is one"));
}

#[test]
fn a_config_is_nested_no_deeper_than_any_that_is_published() {
    let dir = shards();
    let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
    let with = |levels: usize| {
        std::fs::write(dir.path().join("config.json"), nested(levels)).unwrap();
        open(dir.path())
    };
    assert!(with(DEPTH_MAX).is_ok());
    for levels in [DEPTH_MAX + 1, 127, 128, 100_000] {
        let text = refusal(with(levels));
        assert!(text.contains("config.json`") && (text.contains("nested") || text.contains("recursion limit")), "{text}");
    }
}

#[test]
fn a_model_type_is_a_name() {
    let dir = shards();
    assert!(open(dir.path()).unwrap().model_type().unwrap_err().text.contains("no model_type"));
    std::fs::write(dir.path().join("config.json"), r#"{"model_type":3}"#).unwrap();
    assert!(open(dir.path()).unwrap().model_type().unwrap_err().text.contains("model_type is 3"));
}
