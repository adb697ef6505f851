//! `coli run` for a person: the text on standard output, and everything else on standard error.
#![allow(clippy::unwrap_used)]

use coli_test_cli::{Run, copy_demo, demo_case, edit, fresh, says};
use coli_test_common::built;
use serde_json::json;

fn greedy(prompt: &str) -> Run {
    Run::coli(["run", prompt, "--temp", "0", "-n", "64"])
}

#[test]
fn standard_output_is_the_references_text_and_nothing_else() {
    let case = demo_case(0);
    let finished = greedy(&case.prompt).finish().succeeded();
    assert_eq!(finished.stdout, case.text);
    assert!(!finished.stderr.is_empty());
}

#[test]
fn a_prompt_of_many_byte_characters_is_continued_like_the_reference() {
    let case = demo_case(24);
    assert!(!case.prompt.is_ascii());
    assert_eq!(greedy(&case.prompt).finish().succeeded().stdout, case.text);
}

#[test]
fn one_line_says_that_the_demo_model_runs_and_where_it_is() {
    let finished = greedy("Elizabeth").finish().succeeded();
    let lines: Vec<&str> = finished.lines().into_iter().filter(|line| line.contains("demo model")).collect();
    assert_eq!(lines.len(), 1, "{finished:#?}");
    says(lines[0], &[built::demo().to_str().unwrap(), "--model"]);
}

#[test]
fn a_model_that_was_named_is_not_called_the_demo_model() {
    let named = greedy("Elizabeth").arg("--model").arg(built::demo());
    let by_variable = greedy("Elizabeth").env("COLI_MODEL", built::demo());
    for run in [named, by_variable] {
        let finished = run.finish().succeeded();
        assert_eq!(finished.stdout, demo_case(0).text);
        assert!(!finished.stderr.contains("demo model"), "{finished:#?}");
    }
}

#[test]
fn the_choices_and_their_reasons_are_said_before_the_text() {
    let finished = greedy("Elizabeth").args(&["--device", "cpu", "--precision", "exact"]).finish().succeeded();
    let line = finished.lines().into_iter().find(|line| line.contains("plugin olmoe")).unwrap();
    says(line, &["device cpu (asked for by --device cpu)", "precision exact (asked for by --precision exact)"]);
    assert_eq!(finished.stdout, demo_case(0).text);
}

#[test]
fn no_tokens_are_no_text() {
    let finished = Run::coli(["run", "Elizabeth", "--temp", "0", "-n", "0"]).finish().succeeded();
    assert_eq!(finished.stdout, "");
}

#[test]
fn a_random_seed_is_said_and_gives_the_same_text_again() {
    let drawn = |more: &[&str]| Run::coli(["run", "Elizabeth", "-n", "24"]).args(more).finish().succeeded();
    let first = drawn(&[]);
    let seed = first.lines().into_iter().find_map(|line| line.strip_prefix("coli: seed ")).unwrap();
    assert!(!first.stdout.is_empty());
    assert_eq!(drawn(&["--seed", seed]).stdout, first.stdout);
    let second = drawn(&[]);
    assert!(!second.stderr.contains(&format!("coli: seed {seed}\n")), "two runs drew the same seed");
}

#[test]
fn the_text_before_an_end_token_is_printed_without_it() {
    let case = demo_case(0);
    let folder = fresh();
    copy_demo(folder.path());
    let newline = 200;
    edit(&folder.path().join("generation_config.json"), |json| json["eos_token_id"] = json!([4095, newline]));
    let finished = greedy(&case.prompt).arg("--model").arg(folder.path()).finish().succeeded();
    assert!(case.tokens.contains(&newline));
    assert_eq!(Some(finished.stdout.as_str()), case.text.split('\n').next());
}

#[test]
fn a_reader_that_went_away_is_an_error_and_no_panic() {
    let commands: [&[&str]; 7] = [
        &["run", "Elizabeth", "--temp", "0"],
        &["run", "Elizabeth", "--temp", "0", "-n", "4", "--json"],
        &["eval", "logits", "--ids", "1,2"],
        &["plugins"],
        &["plugins", "--json"],
        &["config", "explain"],
        &["completions", "zsh"],
    ];
    for args in commands {
        let error = Run::coli(args).finish_without_stdout().failed(1);
        says(&error, &["standard output", "broken pipe", "its reader has closed it"]);
    }
}

#[test]
fn a_reader_of_standard_error_that_went_away_changes_nothing_else() {
    let case = demo_case(0);
    let finished = greedy(&case.prompt).finish_without_stderr();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), case.text.as_str()), "{finished:#?}");
    assert_eq!(Run::coli(["eval", "logits", "--ids", "1"]).finish_without_stderr().code, Some(0));
    assert_eq!(Run::coli(["run"]).finish_without_stderr().code, Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_one_line() {
    for args in [&["run", "Elizabeth", "--temp", "0"][..], &["run", "Elizabeth", "-n", "2", "--json"], &["config", "explain"], &["plugins"]]
    {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        says(&Run::coli(args).finish_into(full).failed(1), &["standard output", "No space left"]);
    }
}

#[test]
fn the_header_names_the_models_folder_and_size() {
    let folder = fresh();
    copy_demo(&folder.path().join("my-model"));
    let run = greedy("Elizabeth").args(&["--model", "my-model/."]).dir(folder.path());
    says(&run.finish().succeeded().stderr, &["coli: model my-model (25.1 MiB); plugin olmoe "]);
}

/// No colour where nobody sees it.
#[test]
fn nothing_is_coloured_without_a_terminal() {
    for args in [&["--help"][..], &["run", "--help"], &["run", "x", "--tmep"], &["runn"], &["--version"], &["run", "Elizabeth", "-n", "1"]]
    {
        for variables in [&[][..], &[("NO_COLOR", "1")], &[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]] {
            let run = variables.iter().fold(Run::coli(args), |run, (name, value)| run.env(name, value));
            let finished = run.finish();
            assert!(!(finished.stdout + &finished.stderr).contains('\u{1b}'), "{args:?}");
        }
    }
}
