//! Every architecture's plugin through the program: its golden models against the reference, and what is refused.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use coli_test_cli::{Run, edit, fresh, says};
use coli_test_common::compare::argmax;
use coli_test_common::{built, fixture};

/// Each golden model's plugin and folder.
const GOLDEN: [(&str, &str); 6] = [
    ("olmoe", "olmoe"),
    ("qwen36", "qwen3_moe"),
    ("qwen36", "qwen36"),
    ("qwen36", "qwen35_dense"),
    ("glm53", "glm53"),
    ("deepseek_v41", "deepseek_v41"),
];

fn golden(plugin: &str, case: &str) -> PathBuf {
    built::plugins().join(plugin).join("golden").join(case)
}

/// The reference's tokens: its prompt and its greedy continuation.
fn ids(folder: &Path) -> Vec<u32> {
    let reference = fixture::json(&folder.join("reference.json"));
    [fixture::ids(&reference["prompt"]), fixture::ids(&reference["greedy"])].concat()
}

fn listed(ids: &[u32]) -> String {
    ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// A folder with what a model's folder has but for its tokenizer.
fn without_tokenizer(from: &Path) -> tempfile::TempDir {
    let folder = fresh();
    for name in ["config.json", "model.safetensors"] {
        fs::copy(from.join(name), folder.path().join(name)).unwrap();
    }
    folder
}

#[test]
fn every_golden_model_has_the_references_best_token_at_each_position() {
    for (plugin, case) in GOLDEN {
        let folder = golden(plugin, case);
        let ids = ids(&folder);
        let run = Run::coli(["eval", "logits", "--model-plugin", plugin, "--ids", &listed(&ids), "--model"]).arg(&folder);
        let finished = run.finish().succeeded();
        let have: Vec<Vec<usize>> = finished.stdout.lines().skip(1).map(numbers).collect();
        let want = &fixture::tensors(&folder.join("reference.st"))["logits"];
        let best = want.data.chunks_exact(want.shape[1]).map(argmax);
        let want: Vec<Vec<usize>> = ids.iter().enumerate().zip(best).map(|((at, id), best)| vec![at, *id as usize, best]).collect();
        assert_eq!(have, want, "{case}");
        // So that a table without rows proves nothing.
        assert_eq!(want.len(), ids.len(), "{case}");
    }
}

/// Position, token and best token of a line of the table.
fn numbers(line: &str) -> Vec<usize> {
    line.split(' ').take(3).map(|word| word.parse().unwrap()).collect()
}

/// By `model_type` alone, without the plugin's name.
#[test]
fn every_golden_model_finds_its_plugin() {
    for (plugin, case) in GOLDEN {
        let folder = golden(plugin, case);
        let finished = Run::coli(["-v", "eval", "logits", "--ids", "1,2", "--model"]).arg(&folder).finish();
        assert_eq!((finished.code, finished.stdout.lines().count()), (Some(0), 3), "{case}: {finished:#?}");
        says(&finished.stderr, &[&format!("plugin {plugin} ")]);
    }
}

#[test]
fn every_golden_model_can_be_dumped() {
    for (plugin, case) in GOLDEN {
        let folder = golden(plugin, case);
        let dump = Run::coli(["plugins", "dump"]).arg(&folder).finish().succeeded().stdout;
        let layers = fixture::json(&folder.join("config.json"));
        let count = |json: &serde_json::Value| json["num_hidden_layers"].as_u64();
        let layers = count(&layers["text_config"]).or(count(&layers)).unwrap();
        let segments: Vec<&str> = dump.lines().filter_map(|line| line.strip_prefix("segment ")).collect();
        let named = (0..layers).map(|layer| format!("layer.{layer}"));
        let expected: Vec<String> = ["embed".to_string()].into_iter().chain(named).chain(["head".into()]).collect();
        assert_eq!(segments[..expected.len()], expected, "{case}");
        says(&dump, &["port out h:", "port out logits:", "port out sampled:"]);
    }
}

#[test]
fn every_plugin_is_listed_as_accepted() {
    let list = Run::coli(["plugins", "--json"]).finish().json();
    let list = list.as_array().unwrap();
    let states = |id: &str| list.iter().filter(|plugin| plugin["id"] == id).map(|plugin| &plugin["state"]).collect::<Vec<_>>();
    for id in ["olmoe", "qwen36", "glm53", "deepseek_v41"] {
        assert_eq!(states(id), ["accepted"], "{id}: {list:#?}");
    }
}

#[test]
fn a_prompt_for_a_model_without_a_tokenizer_is_refused() {
    let error = Run::coli(["run", "x", "-n", "1", "--model"]).arg(golden("glm53", "glm53")).finish().failed(3);
    says(&error, &["tokenizer.json"]);
}

/// Rows of its tables follow from the tokens' texts, so ids alone are not enough for it.
#[test]
fn a_plugin_that_needs_the_tokenizers_texts_says_that_they_are_missing() {
    let folder = without_tokenizer(&golden("deepseek_v41", "deepseek_v41"));
    let eval = Run::coli(["eval", "logits", "--model-plugin", "deepseek_v41", "--ids", "1,2", "--model"]).arg(folder.path());
    let dump = Run::coli(["plugins", "dump"]).arg(folder.path());
    for run in [eval, dump] {
        let error = run.finish().failed(3);
        says(&error, &["plugin deepseek_v41 needs the texts of the model's tokens", "tokenizer.json` is missing"]);
        says(&error, &[folder.path().to_str().unwrap()]);
        assert!(!error.contains("eval logits"), "{error}");
    }
}

#[test]
fn a_tokenizer_with_fewer_tokens_than_the_model_may_give_is_refused_before_the_weights_are_read() {
    let folder = without_tokenizer(&golden("deepseek_v41", "deepseek_v41"));
    fs::copy(golden("deepseek_v41", "deepseek_v41").join("tokenizer.json"), folder.path().join("tokenizer.json")).unwrap();
    edit(&folder.path().join("config.json"), |config| config["text_config"]["vocab_size"] = 300.into());
    let run = Run::coli(["eval", "logits", "--ids", "1,2", "--model"]).arg(folder.path());
    says(&run.finish().failed(3), &["plugin deepseek_v41", "`vocab_size` is 300, the tokenizer has 256 tokens"]);
}

#[test]
fn a_tokenizer_of_another_model_is_refused_by_the_key_that_counts_its_texts() {
    let folder = without_tokenizer(&golden("deepseek_v41", "deepseek_v41"));
    fs::copy(built::demo().join("tokenizer.json"), folder.path().join("tokenizer.json")).unwrap();
    let run = Run::coli(["eval", "logits", "--ids", "1,2", "--model"]).arg(folder.path());
    says(&run.finish().failed(3), &["plugin deepseek_v41", "`engram_compressed_vocab_size`"]);
}

#[test]
fn a_plugin_for_other_models_is_refused() {
    for (plugin, case) in GOLDEN.into_iter().filter(|(plugin, _)| *plugin != "olmoe") {
        let folder = golden(plugin, case);
        let kind = fixture::json(&folder.join("config.json"))["model_type"].as_str().unwrap().to_owned();
        let run = Run::coli(["eval", "logits", "--model-plugin", "olmoe", "--ids", "1", "--model"]).arg(&folder);
        says(&run.finish().failed(3), &["olmoe", &kind]);
    }
}
