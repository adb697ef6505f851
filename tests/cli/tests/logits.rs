//! `coli eval logits`: numbers to compare with, against the reference's.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use coli_test_cli::{Run, copy_golden, fresh, golden, says};
use coli_test_common::compare::{argmax, relative_error};
use coli_test_common::fixture::{self, Tensor};

const BOUND: f32 = 1e-5;

/// The reference's tokens: its prompt and its greedy continuation.
fn ids() -> String {
    let reference = fixture::json(&golden().join("reference.json"));
    let ids = [fixture::ids(&reference["prompt"]), fixture::ids(&reference["greedy"])].concat();
    ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

fn reference() -> HashMap<String, Tensor> {
    fixture::tensors(&golden().join("reference.st"))
}

fn logits(ids: &str) -> Run {
    Run::coli(["eval", "logits", "--ids", ids, "--model"]).arg(golden())
}

fn to(run: Run, out: &Path) -> Run {
    run.arg("--out").arg(out)
}

#[test]
fn the_file_has_the_references_logits() {
    let folder = fresh();
    let out = folder.path().join("out.safetensors");
    let finished = to(logits(&ids()), &out).finish().succeeded();
    assert_eq!(finished.stdout, "");
    says(&finished.stderr, &[out.to_str().unwrap()]);
    let (have, want) = (fixture::tensors(&out), reference());
    assert_eq!(have.keys().collect::<Vec<_>>(), ["logits"]);
    assert_eq!(have["logits"].shape, want["logits"].shape);
    let error = relative_error(&have["logits"].data, &want["logits"].data);
    assert!(error <= BOUND, "{error:e}");
}

#[test]
fn layers_add_the_references_hidden_rows_by_the_fixtures_names() {
    let folder = fresh();
    let out = folder.path().join("out.safetensors");
    to(logits(&ids()), &out).arg("--layers").finish().succeeded();
    let (have, want) = (fixture::tensors(&out), reference());
    let names = |tensors: &HashMap<String, Tensor>| {
        let mut names: Vec<String> = tensors.keys().cloned().collect();
        names.sort();
        names
    };
    assert_eq!(names(&want), ["hidden.0", "hidden.1", "hidden.2", "hidden.3", "logits"]);
    assert_eq!(names(&have), names(&want));
    for (name, want) in &want {
        assert_eq!(have[name].shape, want.shape, "{name}");
        let error = relative_error(&have[name].data, &want.data);
        assert!(error <= BOUND, "{name}: {error:e}");
    }
}

/// The rows of a prefix are those of the whole: a position sees what came before it only.
#[test]
fn one_token_is_enough() {
    let folder = fresh();
    let out = folder.path().join("out.safetensors");
    let ids = ids();
    to(logits(ids.split(',').next().unwrap()), &out).arg("--layers").finish().succeeded();
    let (have, want) = (fixture::tensors(&out), reference());
    assert_eq!(have.len(), want.len());
    for (name, have) in have {
        let width = want[&name].shape[1];
        assert_eq!(have.shape, [1, width], "{name}");
        assert!(relative_error(&have.data, &want[&name].data[..width]) <= BOUND, "{name}");
    }
}

#[test]
fn an_existing_file_is_replaced() {
    let folder = fresh();
    let out = folder.path().join("out.safetensors");
    fs::write(&out, vec![7; 1 << 20]).unwrap();
    to(logits("1,2"), &out).finish().succeeded();
    assert_eq!(fixture::tensors(&out)["logits"].shape, [2, 256]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file is left over");
}

#[test]
fn a_relative_file_is_relative_to_where_the_program_was_started() {
    let folder = fresh();
    to(logits("1"), Path::new("out.st")).dir(folder.path()).finish().succeeded();
    assert_eq!(fixture::tensors(&folder.path().join("out.st"))["logits"].shape, [1, 256]);
}

#[test]
fn a_place_that_cannot_be_written_is_an_error_that_names_it() {
    let folder = fresh();
    let inside = folder.path().join("folder/kept");
    fs::create_dir(folder.path().join("folder")).unwrap();
    fs::write(&inside, "old").unwrap();
    for out in [folder.path().join("folder"), folder.path().join("absent/out.st"), inside.join("out.st")] {
        says(&to(logits("1"), &out).finish().failed(2), &["--out", out.to_str().unwrap()]);
    }
    assert_eq!(fs::read(&inside).unwrap(), b"old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file is left over");
}

/// A limit on a file's size stands for a disk that is full; unlike permissions, it holds for root too.
#[cfg(target_os = "linux")]
#[test]
fn a_failed_write_leaves_the_old_file_and_nothing_else() {
    // With the signal for it as it is, which would end the process, and ignored.
    for limit in ["ulimit -f 1", "trap '' XFSZ; ulimit -f 1"] {
        let folder = fresh();
        let out = folder.path().join("out.st");
        fs::write(&out, "old").unwrap();
        says(&to(logits("1,2,3"), &out).arg("--layers").after(limit).finish().failed(1), &[out.to_str().unwrap(), "large"]);
        assert_eq!(fs::read(&out).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file is left over");
    }
}

#[test]
fn a_refused_model_leaves_the_old_file() {
    let model = copy_golden();
    fs::write(model.path().join("model.safetensors"), "garbage").unwrap();
    let out = model.path().join("out.st");
    fs::write(&out, "old").unwrap();
    let run = Run::coli(["eval", "logits", "--ids", "1", "--model"]).arg(model.path());
    to(run, &out).finish().failed(3);
    assert_eq!(fs::read(&out).unwrap(), b"old");
}

#[test]
fn without_a_file_a_table_shows_the_best_token_of_every_position() {
    let ids = ids();
    let finished = logits(&ids).finish().succeeded();
    let want = &reference()["logits"];
    let (rows, width) = (want.shape[0], want.shape[1]);
    let mut lines = finished.stdout.lines();
    assert_eq!(lines.next(), Some("position token best logit"));
    let lines: Vec<Vec<&str>> = lines.map(|line| line.split(' ').collect()).collect();
    assert_eq!(lines.len(), rows);
    for (position, ((line, id), row)) in lines.iter().zip(ids.split(',')).zip(want.data.chunks_exact(width)).enumerate() {
        let best = argmax(row);
        assert_eq!(line[..3], [position.to_string().as_str(), id, &best.to_string()], "position {position}");
        let logit: f32 = line[3].parse().unwrap();
        assert!((logit - row[best]).abs() <= 1e-4, "position {position}: {logit} and {}", row[best]);
    }
}

#[test]
fn the_context_of_the_model_holds_as_many_tokens_and_no_more() {
    let ids = |len: usize| vec!["1"; len].join(",");
    let folder = fresh();
    let out = folder.path().join("out.st");
    to(logits(&ids(512)), &out).finish().succeeded();
    assert_eq!(fixture::tensors(&out)["logits"].shape, [512, 256]);
    says(&to(logits(&ids(513)), &out).finish().failed(2), &["513", "512"]);
    assert_eq!(fixture::tensors(&out)["logits"].shape, [512, 256]);
}
