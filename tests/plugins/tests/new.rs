//! `coli plugins new`: the crate that it writes builds, is accepted, and passes its own golden test on a model worked by hand.
#![allow(clippy::unwrap_used)]

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::Path;
use std::process::Command;

use coli_test_cli::{Run, fresh};
use coli_test_common::built;

/// A tensor to write: name, dimensions, numbers.
type Tensor<'a> = (&'a str, &'a [usize], &'a [f32]);

fn write_safetensors(path: &Path, tensors: &[Tensor<'_>]) {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, shape, numbers) in tensors {
        let start = data.len();
        data.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        header.insert((*name).into(), serde_json::json!({"dtype": "F32", "shape": shape, "data_offsets": [start, data.len()]}));
    }
    let header = serde_json::to_vec(&header).unwrap();
    fs::write(path, [&(header.len() as u64).to_le_bytes()[..], &header, &data].concat()).unwrap();
}

/// Rows of -1 and 1 have the size that the norm gives them, and a layer whose last matrix is zero adds nothing: the logits are sums of the
/// head's numbers with these signs.
fn write_golden(folder: &Path) {
    let config = serde_json::json!({"model_type": "tiny_mlp", "hidden_size": 2, "intermediate_size": 1, "num_hidden_layers": 1,
        "vocab_size": 3, "max_position_embeddings": 8, "rms_norm_eps": 0.0});
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
    let tensors: [Tensor<'_>; 7] = [
        ("model.embed_tokens.weight", &[3, 2], &[1.0, 1.0, 1.0, -1.0, -1.0, -1.0]),
        ("model.layers.0.input_layernorm.weight", &[2], &[0.5, 2.0]),
        ("model.layers.0.mlp.gate_proj.weight", &[1, 2], &[1.0, 2.0]),
        ("model.layers.0.mlp.up_proj.weight", &[1, 2], &[3.0, 4.0]),
        ("model.layers.0.mlp.down_proj.weight", &[2, 1], &[0.0, 0.0]),
        ("model.norm.weight", &[2], &[1.0, 1.0]),
        ("lm_head.weight", &[3, 2], &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]),
    ];
    write_safetensors(&folder.join("model.safetensors"), &tensors);
    fs::write(folder.join("reference.json"), r#"{"prompt": [0, 1], "greedy": [2]}"#).unwrap();
    let logits = [3.0, 12.0, 48.0, -1.0, -4.0, -16.0, -3.0, -12.0, -48.0];
    write_safetensors(&folder.join("reference.st"), &[("logits", &[3, 3], &logits)]);
}

/// Cargo on a crate, into the folder where the other libraries of these tests are built, and with their profile.
fn cargo(crate_: &Path, what: &[&str]) -> (bool, String) {
    let mut command = Command::new("cargo");
    command.args(what).args(["--quiet", "--release", "--offline", "--manifest-path"]).arg(crate_.join("Cargo.toml"));
    command.arg("--target-dir").arg(built::home().parent().unwrap().join("plugins")).env("COLI", built::program());
    let profile = [("OPT_LEVEL", "1"), ("DEBUG", "false"), ("OVERFLOW_CHECKS", "true")];
    command.envs(profile.map(|(key, value)| (format!("CARGO_PROFILE_RELEASE_{key}"), value)));
    let output = command.output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn a_new_crate_builds_is_accepted_and_passes_its_golden_test() {
    let folder = fresh();
    let new = Run::coli(["plugins", "new", "tiny_mlp", "--dir"]).arg(folder.path()).arg("--path").arg(built::root()).finish();
    assert_eq!(new.code, Some(0), "{}", new.stderr);
    let made = folder.path().join("tiny_mlp");
    // The versions that were built already.
    fs::copy(built::root().join("tests/plugins/outside/Cargo.lock"), made.join("Cargo.lock")).unwrap();

    let (passed, text) = cargo(&made, &["test"]);
    assert!(!passed && text.contains("golden/README.md says how it is made"), "{text}");
    write_golden(&made.join("golden"));
    let (passed, text) = cargo(&made, &["test"]);
    assert!(passed, "{text}");

    let (passed, text) = cargo(&made, &["build"]);
    assert!(passed, "{text}");
    let library = format!("{DLL_PREFIX}coli_tiny_mlp{DLL_SUFFIX}");
    fs::copy(built::home().parent().unwrap().join("plugins/release").join(&library), made.join(&library)).unwrap();
    let listed = Run::coli(["plugins"]).env("COLI_PLUGIN_PATH", folder.path()).finish();
    let line = listed.stdout.lines().find(|line| line.starts_with("tiny_mlp")).unwrap();
    assert!(line.contains("accepted") && line.contains("serves model types tiny_mlp"), "{line}");
}

#[test]
fn what_cannot_be_made_is_one_line_and_leaves_nothing() {
    let folder = fresh();
    fs::create_dir(folder.path().join("there")).unwrap();
    let missing = folder.path().join("missing");
    let (here, missing) = (folder.path().to_str().unwrap(), missing.to_str().unwrap());
    let cases: [(&[&str], &str); 4] = [
        (&["My-Model", "--dir", here], "cannot name a plugin"),
        (&["there", "--dir", here], "is there already"),
        (&["mine", "--dir", missing], "is no folder"),
        (&["mine", "--dir", here, "--path", here], "is not coli's source tree"),
    ];
    for (args, text) in cases {
        let finished = Run::coli(["plugins", "new"]).args(args).finish();
        assert_eq!((finished.code, finished.lines().len()), (Some(2), 1), "{}", finished.stderr);
        assert!(finished.stderr.contains(text), "{}", finished.stderr);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
