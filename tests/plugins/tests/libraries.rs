//! Libraries that cannot be used: each is one line of `coli plugins`, which works and accepts the others, and a refusal of the run that
//! needs it.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use coli_test_cli::{copy_plugin, library, says};
use coli_test_plugins::folder::{Folder, Stated};
use coli_test_plugins::libraries;
use coli_test_plugins::model::Model;

/// `coli plugins` refuses the plugin in one line and accepts olmoe, and a run refuses it with the same reason.
#[track_caller]
fn refused(folder: &Folder, id: &str, parts: &[&str]) {
    copy_plugin(folder.path());
    let finished = folder.coli(&["plugins"]).finish().succeeded();
    // The line's end names the manifest; the source tree's olmoe is shadowed.
    let here = format!("[{}", folder.path().display());
    let own: Vec<&str> = finished.stdout.lines().filter(|line| line.contains(&here)).collect();
    let [first, second] = own[..] else { panic!("{id}: {finished:#?}") };
    let (mine, olmoe) = if first.starts_with("olmoe ") { (second, first) } else { (first, second) };
    says(olmoe, &["olmoe", " accepted "]);
    assert!(mine.starts_with(id), "{finished:#?}");
    says(mine, &[&[" refused ", "library "], parts].concat());
    assert_eq!(finished.stderr, "", "what dies must not print");

    let finished = folder.eval(&Model::sound()).finish();
    assert!(!finished.stderr.contains("RUST_BACKTRACE"), "{finished:#?}");
    says(&finished.failed(3), &[&[format!("plugin {id}: library ").as_str()], parts].concat());
}

/// A folder with a library of these bytes under this id.
fn of_bytes(id: &str, bytes: &[u8]) -> Folder {
    let folder = Folder::new();
    folder.put_bytes(&Stated { id, ..Stated::HOSTILE }, bytes);
    folder
}

fn of_file(id: &str, library: &Path) -> Folder {
    of_bytes(id, &fs::read(library).unwrap())
}

#[test]
fn files_that_are_no_whole_library() {
    let whole = fs::read(library()).unwrap();
    let text = b"just some text, and enough of it that it could hold a header of a library file";
    refused(&of_bytes("text", text), "text", &["is not a shared library"]);
    refused(&of_bytes("empty", b""), "empty", &["is not a shared library"]);
    for (id, len) in [("cut-early", 4096), ("cut-half", whole.len() / 2), ("cut-late", whole.len() - 1)] {
        refused(&of_bytes(id, &whole[..len]), id, &["is cut short"]);
    }
}

/// As a download leaves it that reserved all of the file at once. The hostile library, since most of olmoe's is for debuggers only.
#[test]
fn libraries_that_end_in_zeros() {
    let whole = fs::read(libraries::hostile()).unwrap();
    for percent in [1, 10, 30, 50] {
        let id = format!("zeros-{percent}");
        let mut bytes = whole.clone();
        bytes[whole.len() / 100 * percent..].fill(0);
        refused(&of_bytes(&id, &bytes), &id, &[]);
    }
}

#[test]
fn libraries_that_are_no_plugins() {
    let cases: &[(&str, &[&str])] = &[
        ("no_module", &["is not a plugin: it exports no plugin module"]),
        ("undefined", &["cannot be opened", "coli_no_such_function"]),
        ("talks", &["exports no plugin module"]),
    ];
    for (name, parts) in cases {
        let id = name.replace('_', "-");
        refused(&of_file(&id, &libraries::plain(name)), &id, parts);
    }
}

#[test]
fn initialisers_that_end_the_process() {
    let cases: &[(&str, &[&str])] = &[
        ("aborts", &["crashed while being loaded (signal 6)"]),
        ("segfaults", &["crashed while being loaded (signal 11)"]),
        ("exits", &["ended the process while being loaded (exit code 0)"]),
    ];
    for (name, parts) in cases {
        refused(&of_file(name, &libraries::plain(name)), name, parts);
    }
}

#[test]
fn a_library_that_cannot_unwind() {
    refused(&of_file("aborting", &libraries::aborting()), "aborting", &["panic = \"abort\""]);
}

#[test]
fn a_library_that_states_another_id() {
    refused(&of_file("other", &libraries::hostile()), "other", &["states id hostile, and its manifest states other"]);
}
