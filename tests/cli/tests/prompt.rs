//! `coli run`: where the prompt comes from.
#![allow(clippy::unwrap_used)]

use std::fs;

use coli_test_cli::{Run, demo_case, fresh, says};

const GREEDY: [&str; 4] = ["--temp", "0", "-n", "64"];

#[test]
fn argument_file_and_standard_input_give_the_same_text() {
    let case = demo_case(0);
    let folder = fresh();
    fs::write(folder.path().join("p.txt"), &case.prompt).unwrap();
    let runs = [
        Run::coli(["run", &case.prompt]),
        Run::coli(["run", "-f", "p.txt"]),
        Run::coli(["run", "--file", "p.txt"]).stdin("ignored"),
        Run::coli(["run", "-"]).stdin(case.prompt.as_str()),
        Run::coli(["run"]).stdin(case.prompt.as_str()),
        Run::coli(["run"]).stdin(format!("{}\n", case.prompt)),
        Run::coli(["run", &case.prompt]).stdin("ignored"),
    ];
    for run in runs {
        assert_eq!(run.args(&GREEDY).dir(folder.path()).finish().succeeded().stdout, case.text);
    }
}

#[test]
fn only_one_line_end_of_a_file_is_dropped() {
    let ids = |text: &str| {
        let report = Run::coli(["run", "--json", "-n", "0", "--temp", "0"]).stdin(text).finish().json();
        report["prompt_tokens"].clone()
    };
    assert_eq!(ids("a\n"), ids("a"));
    assert_eq!(ids("a\r\n"), ids("a"));
    assert_ne!(ids("a\n\n"), ids("a"));
}

#[test]
fn there_is_exactly_one_source() {
    says(&Run::coli(["run", "x", "-f", "y"]).finish().failed(2), &["--file", "PROMPT"]);
    says(&Run::coli(["run", "-", "-f", "y"]).stdin("x").finish().failed(2), &["--file"]);
    says(&Run::coli(["run", "-f", "y", "-f", "z"]).finish().failed(2), &["--file"]);
}

#[test]
fn an_empty_source_is_named() {
    let folder = fresh();
    fs::write(folder.path().join("p"), "\n").unwrap();
    says(&Run::coli(["run"]).finish().failed(2), &["prompt", "standard input", "empty", "coli run \"Emma was\""]);
    says(&Run::coli(["run", ""]).finish().failed(2), &["the prompt is empty", "coli run"]);
    says(&Run::coli(["run", "-f", "p"]).dir(folder.path()).finish().failed(2), &["`p` is empty"]);
}

#[test]
fn a_file_that_cannot_be_read_is_a_usage_error() {
    let folder = fresh();
    says(&Run::coli(["run", "-f", "absent"]).dir(folder.path()).finish().failed(2), &["`absent`", "No such file"]);
    says(&Run::coli(["run", "-f", "."]).dir(folder.path()).finish().failed(2), &["`.`", "directory"]);
}

#[test]
fn what_is_no_text_is_refused_with_its_source_and_place() {
    let folder = fresh();
    fs::write(folder.path().join("p"), b"ab\xffc").unwrap();
    says(&Run::coli(["run", "-f", "p"]).dir(folder.path()).finish().failed(2), &["`p`", "UTF-8", "offset 2"]);
    says(&Run::coli(["run"]).stdin(&b"\xe6\xbc"[..]).finish().failed(2), &["standard input", "UTF-8", "offset 0"]);
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt as _;
        let error = Run::coli(["run"]).arg(std::ffi::OsStr::from_bytes(b"abc\xff")).finish().failed(2);
        says(&error, &["the prompt", "UTF-8", "offset 3"]);
    }
}

/// A source that never ends must not fill the memory.
#[cfg(unix)]
#[test]
fn a_source_without_an_end_is_refused() {
    says(&Run::coli(["run", "-f", "/dev/zero"]).finish().failed(2), &["/dev/zero", "more than"]);
}

#[test]
fn a_prompt_from_a_file_over_the_context_names_both_numbers() {
    for (words, advice) in [(500, "a larger --ctx, of up to 2048"), (3000, "fewer of them: this model's context has at most 2048")] {
        let error = Run::coli(["run", "--ctx", "16"]).stdin("word ".repeat(words)).finish().failed(2);
        says(&error, &["the context 16", advice, "the prompt has "]);
    }
}
