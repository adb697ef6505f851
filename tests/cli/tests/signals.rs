//! Signals that ask for an end: each is named, has its own exit code, and stops whatever the program is at.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use coli_test_cli::{Run, copy_demo, demo_case, edit, fresh, golden, says};
use coli_test_common::built;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Each signal with its exit code and its name in the line.
const ALL: [(&str, i32, &str); 3] = [("INT", 130, "Ctrl-C"), ("TERM", 143, "SIGTERM"), ("HUP", 129, "SIGHUP")];

/// The demo model without an end token, so that a text is long enough to be stopped.
fn endless() -> TempDir {
    let folder = fresh();
    copy_demo(folder.path());
    edit(&folder.path().join("generation_config.json"), |json| json["eos_token_id"] = json!([]));
    folder
}

/// A text up to the end of the context.
fn long_text(model: &Path) -> Run {
    Run::coli(["run", &demo_case(0).prompt, "--temp", "0", "-n", "100000", "--model"]).arg(model)
}

#[test]
fn each_signal_ends_the_text_with_its_code_and_keeps_what_was_printed() {
    let (model, case) = (endless(), demo_case(0));
    for (signal, code, name) in ALL {
        let mut running = long_text(model.path()).reachable().start();
        running.wait_for_output();
        running.signal(signal);
        let finished = running.finish();
        let text = finished.stdout.clone();
        assert!(text.starts_with(&case.text) || case.text.starts_with(&text), "{finished:#?}");
        // The context would have been full long after it.
        says(&finished.stderr, &[" prompt tokens at "]);
        says(&finished.failed_after_output(code), &["stopped by ", name]);
    }
}

#[test]
fn ctrl_c_ends_a_long_prompt_with_130_and_the_summary() {
    // Some seconds of work.
    let prompt = "word ".repeat(1900);
    for json in [false, true] {
        let run = Run::coli(["run", "--temp", "0", "-n", "1"]).stdin(prompt.as_str());
        let mut running = if json { run.arg("--json") } else { run }.reachable().start();
        running.wait_for_message("loaded ");
        running.interrupt();
        let finished = running.finish();
        says(&finished.stderr, &[" prompt tokens at 0.0/s, 0 tokens at"]);
        if json {
            let report: Value = serde_json::from_str(&finished.stdout).unwrap();
            assert_eq!((&report["stop_reason"], &report["timings"]["first_token_s"]), (&json!("interrupted"), &json!(null)));
            assert_eq!((&report["tokens"], &report["text"]), (&json!([]), &json!("")));
        }
        assert!(json || finished.stdout.is_empty(), "{finished:#?}");
        says(&finished.failed_after_output(130), &["Ctrl-C"]);
    }
}

/// What `nohup` and a shell's `&` do.
#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let model = endless();
    let mut running = long_text(model.path()).after("trap '' HUP INT").reachable().start();
    running.wait_for_output();
    running.signal("HUP");
    running.interrupt();
    running.signal("HUP");
    running.signal("TERM");
    says(&running.finish().failed_after_output(143), &["SIGTERM"]);
}

/// The golden model with a vocabulary so large that reading its weights takes a while. The file is a hole: it takes no room on the disk.
fn large() -> TempDir {
    const VOCAB: u64 = 1 << 21;
    let folder = fresh();
    let config = fs::read(golden().join("config.json")).unwrap();
    fs::write(folder.path().join("config.json"), config).unwrap();
    edit(&folder.path().join("config.json"), |config| config["vocab_size"] = json!(VOCAB));
    let bytes = fs::read(golden().join("model.safetensors")).unwrap();
    let len = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + len]).unwrap();
    let mut end = 0;
    for (name, tensor) in header.as_object_mut().unwrap().iter_mut().filter(|(name, _)| *name != "__metadata__") {
        if name.contains("embed_tokens") || name.contains("lm_head") {
            tensor["shape"][0] = json!(VOCAB);
        }
        let numbers: u64 = tensor["shape"].as_array().unwrap().iter().map(|len| len.as_u64().unwrap()).product();
        let start = end;
        end += numbers * if tensor["dtype"] == "F32" { 4 } else { 2 };
        tensor["data_offsets"] = json!([start, end]);
    }
    let mut text = header.to_string();
    text.push_str(&" ".repeat(text.len().next_multiple_of(8) - text.len()));
    let path = folder.path().join("model.safetensors");
    fs::write(&path, [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()).unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(8 + text.len() as u64 + end).unwrap();
    folder
}

#[test]
fn a_signal_in_the_reading_of_the_weights_leaves_an_object_too() {
    let model = large();
    fs::copy(built::demo().join("tokenizer.json"), model.path().join("tokenizer.json")).unwrap();
    let mut running = Run::coli(["run", "x", "--json", "--model"]).arg(model.path()).reachable().start();
    running.wait_for_message("precision exact");
    running.interrupt();
    let finished = running.finish();
    assert!(!finished.stderr.contains("loaded "), "all of it was read: {finished:#?}");
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((&report["stop_reason"], &report["plugin"]), (&json!("interrupted"), &json!("olmoe")));
    assert_eq!((&report["seed"], &report["tokens"], &report["text"]), (&json!(null), &json!([]), &json!("")));
    assert!(!report["prompt_tokens"].as_array().unwrap().is_empty(), "{report}");
    let timings = json!({"load_s": null, "first_token_s": null, "prompt_tok_s": 0.0, "gen_tok_s": 0.0});
    assert_eq!(report["timings"], timings);
    says(&finished.failed_after_output(130), &["Ctrl-C"]);
}

#[test]
fn the_first_signal_ends_the_reading_of_the_weights_and_leaves_nothing_behind() {
    let (model, into) = (large(), fresh());
    for (signal, code, name) in ALL {
        let run = Run::coli(["eval", "logits", "--ids", "1", "--model"]).arg(model.path());
        let mut running = run.arg("--out").arg(into.path().join("out.st")).reachable().start();
        running.wait_for_message("precision exact");
        running.signal(signal);
        let finished = running.finish();
        assert!(!finished.stderr.contains("loaded "), "all of it was read: {finished:#?}");
        says(&finished.failed(code), &[name]);
        assert_eq!(fs::read_dir(into.path()).unwrap().count(), 0, "a temporary file is left over");
    }
}
