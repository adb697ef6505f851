//! Opening libraries in a child process, and remembering what became of them.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use coli_test_cli::{Run, fresh, says};
use coli_test_plugins::folder::{Folder, Stated};
use coli_test_plugins::libraries;
use coli_test_plugins::model::Model;
use tempfile::TempDir;

const REMEMBERED: &str = "crashed while being loaded (signal 6), and is not tried again; `coli plugins --recheck` does";

/// A folder with a plugin whose library aborts, and its library.
fn crashing() -> (Folder, std::path::PathBuf) {
    let folder = Folder::new();
    let library = folder.put(&Stated { id: "aborts", ..Stated::HOSTILE }, &libraries::plain("aborts"));
    (folder, library)
}

/// The line that `coli plugins` has for the plugin.
fn listed(run: Run, id: &str) -> String {
    let finished = run.finish().succeeded();
    let line = finished.stdout.lines().find(|line| line.starts_with(id)).unwrap_or_else(|| panic!("{finished:#?}"));
    line.into()
}

fn plugins(folder: &Folder, cache: &Path, more: &[&str]) -> Run {
    folder.coli(&["plugins"]).args(more).env("XDG_CACHE_HOME", cache)
}

#[test]
fn a_crash_is_remembered_until_the_file_changes_or_it_is_asked_for() {
    let (cache, (folder, library)) = (fresh(), crashing());
    let first = listed(plugins(&folder, cache.path(), &[]), "aborts");
    assert!(first.contains("(signal 6)") && !first.contains("not tried again"), "{first}");
    says(&listed(plugins(&folder, cache.path(), &[]), "aborts"), &[REMEMBERED]);
    let model = Model::sound();
    says(&folder.eval(&model).env("XDG_CACHE_HOME", cache.path()).finish().failed(3), &["plugin aborts: ", REMEMBERED]);
    let again = listed(plugins(&folder, cache.path(), &["--recheck"]), "aborts");
    assert!(again.contains("(signal 6)") && !again.contains("not tried again"), "{again}");

    fs::write(&library, "another file").unwrap();
    says(&listed(plugins(&folder, cache.path(), &[]), "aborts"), &["is not a shared library"]);
}

#[test]
fn a_run_remembers_a_crash_as_well() {
    let (cache, (folder, _)) = (fresh(), crashing());
    let run = |model: &Model| folder.eval(model).env("XDG_CACHE_HOME", cache.path()).finish().failed(3);
    let model = Model::sound();
    assert!(!run(&model).contains("not tried again"));
    says(&run(&model), &[REMEMBERED]);
}

/// Whether the cache has the library's good verdict.
fn remembers_that_it_opens(cache: &TempDir) -> bool {
    fs::read_to_string(cache.path().join("coli/plugins.json")).is_ok_and(|text| text.contains("\"opens\""))
}

#[test]
fn a_library_that_opens_is_remembered_too() {
    let (cache, folder) = (fresh(), Folder::hostile(&libraries::hostile()));
    let model = Model::sound();
    for _ in 0..2 {
        assert_eq!(folder.eval(&model).env("XDG_CACHE_HOME", cache.path()).finish().code, Some(0));
        assert!(remembers_that_it_opens(&cache));
    }
}

#[test]
fn without_a_variable_the_cache_lies_in_the_persons_folder() {
    let (person, folder) = (fresh(), Folder::hostile(&libraries::hostile()));
    assert_eq!(folder.eval(&Model::sound()).env("HOME", person.path()).finish().code, Some(0));
    assert!(person.path().join(".cache/coli/plugins.json").is_file());
}

#[test]
fn a_cache_that_cannot_be_written_or_read_is_no_failure() {
    let (cache, (folder, _)) = (fresh(), crashing());
    let file = cache.path().join("file");
    fs::write(&file, "").unwrap();
    for _ in 0..2 {
        let line = listed(plugins(&folder, &file, &[]), "aborts");
        assert!(line.contains("(signal 6)") && !line.contains("not tried again"), "{line}");
    }
    fs::create_dir(cache.path().join("coli")).unwrap();
    fs::write(cache.path().join("coli/plugins.json"), "\u{1b} no JSON").unwrap();
    says(&listed(plugins(&folder, cache.path(), &[]), "aborts"), &["(signal 6)"]);
    says(&listed(plugins(&folder, cache.path(), &[]), "aborts"), &[REMEMBERED]);
}

#[test]
fn a_library_that_never_finishes_loading_is_refused() {
    let (cache, folder) = (fresh(), Folder::new());
    folder.put(&Stated { id: "loops", ..Stated::HOSTILE }, &libraries::plain("loops"));
    says(&listed(plugins(&folder, cache.path(), &[]), "loops"), &[" refused ", "did not finish loading within 10 s"]);
    says(&listed(plugins(&folder, cache.path(), &[]), "loops"), &["not tried again"]);
}

/// A library that opens and crashes in its first call: the child makes that call too.
#[test]
fn a_library_that_crashes_when_it_is_asked_is_refused_before_a_model_is() {
    let folder = Folder::new();
    folder.put(&Stated { model_type: "ends", ..Stated::HOSTILE }, &libraries::hostile());
    says(&folder.coli(&["plugins"]).finish().succeeded().stdout, &["hostile ", " refused ", "(signal 6)"]);
    let model = Model::with("model_type", "ends");
    says(&folder.eval(&model).finish().failed(3), &["plugin hostile: ", "(signal 6)"]);
}

#[test]
fn the_childs_command_is_not_shown_and_answers_in_one_line() {
    assert!(!Run::coli(["--help"]).finish().stdout.contains("__check-plugin"));
    let (folder, _) = crashing();
    let manifest = folder.path().join("aborts/aborts.plugin.toml");
    let answer = Run::coli(["__check-plugin"]).arg(&manifest).arg(&manifest).finish().json();
    says(answer["refused"].as_str().unwrap(), &["is not a shared library"]);
}
