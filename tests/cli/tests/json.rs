//! `coli run --json`: one object for a program to read.
#![allow(clippy::unwrap_used)]

use coli_test_cli::{Run, copy_demo, demo_case, edit, fresh};
use coli_test_common::{built, fixture};
use serde_json::{Value, json};

fn report(args: &[&str]) -> Value {
    Run::coli(["run", "--json"]).args(args).finish().json()
}

fn tokens(report: &Value) -> Vec<u32> {
    fixture::ids(&report["tokens"])
}

fn keys(object: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn the_object_has_exactly_the_promised_fields() {
    let report = report(&["Elizabeth", "-n", "4"]);
    let fields = ["device", "model", "plugin", "precision", "prompt_tokens", "seed", "stop_reason", "text", "timings", "tokens"];
    assert_eq!(keys(&report), fields);
    assert_eq!(keys(&report["timings"]), ["first_token_s", "gen_tok_s", "load_s", "prompt_tok_s"]);
}

#[test]
fn the_object_says_what_ran_and_what_the_reference_says_too() {
    let case = demo_case(0);
    let report = report(&[&case.prompt, "--temp", "0", "-n", "64", "--seed", "18446744073709551615"]);
    assert_eq!(report["model"], built::demo().to_str().unwrap());
    assert_eq!((&report["plugin"], &report["device"], &report["precision"]), (&json!("olmoe"), &json!("cpu"), &json!("exact")));
    assert_eq!(report["seed"], json!(null), "nothing is drawn at temperature 0");
    assert_eq!(fixture::ids(&report["prompt_tokens"]), case.prompt_ids);
    assert_eq!(tokens(&report), case.tokens);
    assert_eq!(report["text"], case.text);
    assert_eq!(report["stop_reason"], "length");
}

#[test]
fn the_timings_are_those_of_work_that_was_done() {
    let report = report(&["Elizabeth", "-n", "8"]);
    let timing = |name: &str| report["timings"][name].as_f64().unwrap();
    for name in ["load_s", "first_token_s", "prompt_tok_s", "gen_tok_s"] {
        assert!(timing(name) > 0.0 && timing(name).is_finite(), "{name}: {report}");
    }
    assert!(timing("first_token_s") > timing("load_s"), "the first token counts from the start: {report}");
}

#[test]
fn the_text_is_what_is_streamed_without_json() {
    let args = ["naïve café — “quoted”", "--seed", "11", "-n", "48"];
    let streamed = Run::coli(["run"]).args(&args).finish().succeeded().stdout;
    assert!(!streamed.is_empty());
    assert_eq!(report(&args)["text"], streamed);
}

#[test]
fn the_same_seed_gives_the_same_tokens_and_another_one_others() {
    let drawn = |seed: &str| tokens(&report(&["My dear", "--temp", "0.8", "-n", "32", "--seed", seed]));
    let first = drawn("1");
    assert_eq!(first.len(), 32);
    assert_eq!(drawn("1"), first);
    let largest = report(&["My dear", "--temp", "0.8", "-n", "1", "--seed", "18446744073709551615"]);
    assert_eq!(largest["seed"], json!(u64::MAX));
    assert_ne!(drawn("2"), first);
    assert_ne!(first, demo_case(1).tokens[..32], "at a temperature over 0 the most probable token is not always drawn");
}

#[test]
fn the_reported_seed_gives_the_same_tokens_again() {
    let first = report(&["My dear", "-n", "16"]);
    let seed = first["seed"].as_u64().unwrap().to_string();
    assert_eq!(tokens(&report(&["My dear", "-n", "16", "--seed", &seed])), tokens(&first));
}

#[test]
fn one_candidate_is_the_most_probable_one_at_any_temperature() {
    let case = demo_case(1);
    for narrow in [["--top-k", "1"], ["--top-p", "1e-9"]] {
        let report = report(&[&case.prompt, "--temp", "1.5", "-n", "32", narrow[0], narrow[1]]);
        assert_eq!(tokens(&report), case.tokens[..32], "{narrow:?}");
    }
}

#[test]
fn no_tokens_are_an_object_without_text() {
    let report = report(&["Elizabeth", "-n", "0", "--temp", "0"]);
    assert_eq!(fixture::ids(&report["prompt_tokens"]), demo_case(0).prompt_ids);
    assert_eq!((tokens(&report).len(), &report["text"], &report["stop_reason"]), (0, &json!(""), &json!("length")));
}

#[test]
fn a_full_context_is_the_reason_to_stop() {
    let case = demo_case(0);
    let report = report(&[&case.prompt, "--temp", "0", "--ctx", "8"]);
    assert_eq!(report["stop_reason"], "context");
    // The last position's own token is known, and has no position any more.
    let room = 8 - case.prompt_ids.len();
    assert_eq!(tokens(&report), case.tokens[..=room]);
}

#[test]
fn a_prompt_that_fills_the_context_leaves_room_for_the_token_after_it() {
    let case = demo_case(1);
    let report = report(&[&case.prompt, "--temp", "0", "--ctx", &case.prompt_ids.len().to_string()]);
    assert_eq!((tokens(&report), &report["stop_reason"]), (case.tokens[..1].to_vec(), &json!("context")));
}

#[test]
fn an_end_token_is_the_reason_to_stop_and_the_last_token() {
    let case = demo_case(0);
    let newline = 200;
    let at = case.tokens.iter().position(|id| *id == newline).unwrap();
    let folder = fresh();
    copy_demo(folder.path());
    edit(&folder.path().join("generation_config.json"), |json| json["eos_token_id"] = json!(newline));
    let run = Run::coli(["run", "--json", &case.prompt, "--temp", "0", "-n", "64", "--model"]).arg(folder.path());
    let report = run.finish().json();
    assert_eq!((tokens(&report), &report["stop_reason"]), (case.tokens[..=at].to_vec(), &json!("eos")));
    assert_eq!(report["text"].as_str(), case.text.split('\n').next());
    assert_eq!(report["model"], folder.path().to_str().unwrap());
}

#[test]
fn the_end_token_of_config_json_counts_where_generation_config_json_is_missing() {
    let case = demo_case(0);
    let folder = fresh();
    copy_demo(folder.path());
    std::fs::remove_file(folder.path().join("generation_config.json")).unwrap();
    edit(&folder.path().join("config.json"), |json| json["eos_token_id"] = json!(case.tokens[2]));
    let run = Run::coli(["run", "--json", &case.prompt, "--temp", "0", "--model"]).arg(folder.path());
    let report = run.finish().json();
    assert_eq!((tokens(&report), &report["stop_reason"]), (case.tokens[..3].to_vec(), &json!("eos")));
}
