//! `coli run`: how tokens are chosen and where a text ends.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use coli_test_cli::{Run, demo_case, says};
use coli_test_common::fixture;
use serde_json::{Value, json};

fn report(args: &[&str]) -> Value {
    Run::coli(["run", "--json"]).args(args).finish().json()
}

/// Written by `tests/cli/repetition/make_repetition_cases.py`.
#[test]
fn the_repetition_penalty_gives_the_references_tokens() {
    let reference = fixture::json(&Path::new(env!("CARGO_MANIFEST_DIR")).join("repetition/repetition_cases.json"));
    let cases = reference["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 9);
    for case in cases {
        let prompt = demo_case(case["case"].as_u64().unwrap() as usize).prompt;
        let expected = fixture::ids(&case["tokens"]);
        let (penalty, count) = (case["repeat_penalty"].to_string(), expected.len().to_string());
        let report = report(&[&prompt, "--temp", "0", "-n", &count, "--repeat-penalty", &penalty]);
        assert_eq!(fixture::ids(&report["tokens"]), expected, "{prompt} with {penalty}");
    }
}

#[test]
fn a_min_p_of_one_is_greedy_and_one_of_zero_changes_nothing() {
    let case = demo_case(1);
    let args = |min_p: &'static str| [case.prompt.as_str(), "--temp", "1.5", "-n", "24", "--seed", "3", "--min-p", min_p];
    assert_eq!(fixture::ids(&report(&args("1"))["tokens"]), case.tokens[..24]);
    let off = report(&args("0"));
    assert_eq!(off["tokens"], report(&args("0")[..7])["tokens"]);
    assert_ne!(off["tokens"], report(&args("0.5"))["tokens"]);
}

#[test]
fn numbers_out_of_range_are_usage_errors_that_name_the_option() {
    for (option, values) in [("--min-p", ["-0.1", "1.1", "nan", "x"]), ("--repeat-penalty", ["0", "-1", "nan", "101"])] {
        for value in values {
            says(&Run::coli(["run", "x", option, value]).finish().failed(2), &[option, value, "expected a number"]);
        }
    }
}

#[test]
fn a_stop_text_ends_the_text_and_is_not_printed() {
    let case = demo_case(0);
    let run = |stops: &[&str]| {
        let run = Run::coli(["run", &case.prompt, "--temp", "0", "-n", "64"]);
        stops.iter().fold(run, |run, stop| run.args(&["--stop", stop]))
    };
    // Within a token, over several tokens, at the beginning, of several the first, and one that never comes.
    let middle = &case.text[20..26];
    let over = &case.text[5..40];
    let begin = &case.text[..3];
    for (stops, expected) in [
        (&[middle][..], &case.text[..case.text.find(middle).unwrap()]),
        (&[over], &case.text[..5]),
        (&[begin], ""),
        (&["never to be found", middle, over], &case.text[..case.text.find(middle).unwrap()]),
        (&["never to be found"], &case.text),
    ] {
        let finished = run(stops).finish().succeeded();
        assert_eq!(finished.stdout, expected, "{stops:?}");
        let report = run(stops).arg("--json").finish().json();
        assert_eq!(report["text"], expected);
        assert_eq!(report["stop_reason"], if expected == case.text { "length" } else { "stop" });
    }
}

/// What is held back as the beginning of a stop text is given out when the text ends otherwise.
#[test]
fn the_beginning_of_a_stop_text_is_kept_at_the_end() {
    let case = demo_case(0);
    let ending = format!("{}never", &case.text[case.text.len() - 9..]);
    let finished = Run::coli(["run", &case.prompt, "--temp", "0", "-n", "64", "--stop", &ending]).finish().succeeded();
    assert_eq!(finished.stdout, case.text);
}

#[test]
fn an_empty_stop_text_is_a_usage_error() {
    says(&Run::coli(["run", "x", "--stop", ""]).finish().failed(2), &["--stop", "empty"]);
}

#[test]
fn a_stop_text_may_begin_with_a_dash() {
    let report = report(&["Elizabeth", "--temp", "0", "-n", "4", "--stop", "--"]);
    assert_eq!(report["stop_reason"], json!("length"));
}
