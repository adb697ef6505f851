//! A plugin that is built outside of the workspace, without cmake, with an op and an architecture of its own: it runs as the reference
//! does, and what is wrong with such an op is one line.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use coli_app::engine::{self, OpenRequest};
use coli_config::{Baked, Environment};
use coli_test_cli::{Finished, Run, fresh};
use coli_test_common::compare::{bits, relative_error};
use coli_test_common::fixture;
use coli_test_golden::logits;
use coli_test_plugins::outside::{folder, golden};
use tempfile::TempDir;

fn ids() -> Vec<u32> {
    let reference = fixture::json(&golden().join("reference.json"));
    [fixture::ids(&reference["prompt"]), fixture::ids(&reference["greedy"])].concat()
}

fn coli(folder: &TempDir, args: &[&str]) -> Run {
    Run::coli(args).env("COLI_PLUGIN_PATH", folder.path())
}

/// `coli -v eval logits` on the golden model.
fn eval(folder: &TempDir, ids: &[u32], out: &Path) -> Finished {
    let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
    let run = coli(folder, &["-v", "eval", "logits", "--layers", "--ids", &ids.join(",")]);
    run.arg("--model").arg(golden()).arg("--out").arg(out).finish()
}

/// The last line of a run that failed with this code.
fn refusal(finished: &Finished, code: i32) -> String {
    assert_eq!(finished.code, Some(code), "{}", finished.stderr);
    assert!(!finished.stderr.contains("thread '"), "{}", finished.stderr);
    finished.lines().last().unwrap().to_string()
}

#[test]
fn the_model_gives_the_references_numbers_and_the_op_was_tried_first() {
    let (folder, out) = (folder("", "id", "id"), fresh());
    let out = out.path().join("out.safetensors");
    let finished = eval(&folder, &ids(), &out);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let tried = "plugin outside: its op outside.decay@1 passed its 2 cases on the CPU";
    assert!(finished.stderr.contains(tried), "{}", finished.stderr);
    let (have, want) = (fixture::tensors(&out), fixture::tensors(&golden().join("reference.st")));
    assert_eq!(have.len(), want.len());
    for (name, want) in want {
        assert_eq!(have[&name].shape, want.shape, "{name}");
        let error = relative_error(&have[&name].data, &want.data);
        assert!(error <= 1e-5, "{name} is off by {error:e}");
    }
}

#[test]
fn the_greedy_continuation_is_the_references() {
    let folder = folder("", "id", "id");
    let reference = fixture::json(&golden().join("reference.json"));
    let (prompt, greedy) = (fixture::ids(&reference["prompt"]), fixture::ids(&reference["greedy"]));
    let words: Vec<String> = prompt.iter().map(|id| format!("w{id}")).collect();
    let run = coli(&folder, &["run", "--temp", "0", "--json", "-n", &greedy.len().to_string(), &words.join(" "), "--model"]);
    let finished = run.arg(golden()).finish();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let report: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(fixture::ids(&report["tokens"]), greedy);
}

#[test]
fn pieces_of_any_size_give_the_bits_of_one_block() {
    let folder = folder("", "id", "id");
    let values = [("COLI_HOME", folder.path().as_os_str()), ("COLI_PLUGIN_PATH", folder.path().as_os_str())];
    let environment = Environment::from_values(values.map(|(key, value)| (key.into(), value.into())), Baked::default()).unwrap();
    let plugins = engine::discover_plugins(None, &environment).unwrap();
    let prepared = engine::prepare(&golden(), &plugins, &OpenRequest::default()).unwrap();
    let mut engine = prepared.load(&mut |_, _| Ok(())).unwrap();
    let mut run = |piece: usize| {
        let conv = engine.open_conversation();
        let logits = logits(&mut engine, conv, &ids(), piece);
        engine.close_conversation(conv);
        bits(&logits)
    };
    let whole = run(usize::MAX);
    for piece in [1, 2, 5] {
        assert_eq!(run(piece), whole, "pieces of {piece}");
    }
}

#[test]
fn a_case_that_is_wrong_refuses_the_plugin() {
    let (folder, out) = (folder("wrong_case", "id", "id"), fresh());
    let line = refusal(&eval(&folder, &ids(), &out.path().join("out")), 3);
    assert!(line.contains("plugin outside: its op outside.decay@1 fails its case `halves`: port `y` is off by "), "{line}");
}

#[test]
fn a_panic_in_the_op_is_one_line() {
    let (folder, out) = (folder("panic_in_run", "id", "id"), fresh());
    let line = refusal(&eval(&folder, &ids(), &out.path().join("out")), 1);
    assert!(line.contains("layer.0 op 0 outside.decay@1: plugin outside: the plugin panicked in `op_run` at "), "{line}");
    assert!(line.ends_with("position 5 is too far"), "{line}");
}

#[test]
fn a_manifest_that_names_the_ops_wrongly_is_refused() {
    let own = "own_ops = [\"outside.decay@1\", \"outside.turn@1\"]";
    let cases = [
        (own, "own_ops = [\"decay@1\"]", "key `own_ops`: expected a list of op names with a vendor"),
        (own, "own_ops = []", "it needs op outside.decay@1, which this host does not have"),
        (
            own,
            "own_ops = [\"outside.decay@1\", \"outside.turn@1\", \"outside.other@1\"]",
            "does not offer op outside.other@1, which its manifest names",
        ),
        ("\"take@1\"]", "\"take@1\", \"elsewhere.op@3\"]", "it needs op elsewhere.op@3, which this host does not have"),
    ];
    for (old, new, text) in cases {
        let folder = folder("", old, new);
        let listed = coli(&folder, &["plugins"]).finish();
        assert_eq!(listed.code, Some(0), "{}", listed.stderr);
        let line = listed.stdout.lines().find(|line| line.contains("outside.plugin.toml")).unwrap();
        assert!(line.contains("refused") && line.contains(text), "{line}");
    }
}

#[test]
fn a_dump_has_the_op_with_its_operand_weight_and_state() {
    let folder = folder("", "id", "id");
    let dump = |args: &[&str]| coli(&folder, &["plugins", "dump"]).arg(golden()).args(args).finish();
    let finished = dump(&["--segment", "layer.0"]);
    let lines = [
        "segment layer.0",
        "  port in h: v0 tokens f32[12]",
        // 0.75 is 3f400000.
        "  op 0 outside.decay@1: v1 tokens f32[12] <- v0[0..12]; weights layer.0.gain[12]; states layer.0.past[12] append; params 0000403f",
    ];
    assert_eq!(finished.stdout.lines().take(3).collect::<Vec<_>>(), lines, "{}", finished.stderr);
    assert_eq!(finished.stdout.lines().last(), Some("  port out h: v2 tokens f32[12]"));
    let whole = dump(&[]).stdout;
    let segments: Vec<&str> = whole.lines().filter(|line| line.starts_with("segment ")).collect();
    assert_eq!(segments, ["segment embed", "segment layer.0", "segment head"]);
    assert!(whole.contains("  input i0 token: tokens i32[1] from builtin token\n"), "{whole}");
    let line = refusal(&dump(&["--segment", "layer.1"]), 2);
    assert!(line.contains("no segment layer.1, only embed, layer.0, head"), "{line}");
}
