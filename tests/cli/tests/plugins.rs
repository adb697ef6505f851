//! `coli plugins`: what became of every plugin, and why.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use coli_test_cli::{Run, copy_plugin, fresh, library_name, says};
use coli_test_common::built;
use serde_json::Value;
use tempfile::TempDir;

fn manifest() -> String {
    fs::read_to_string(built::plugins().join("olmoe/olmoe.plugin.toml")).unwrap()
}

/// Puts a plugin into a folder of plugins; `library` is the text in the place of its library.
fn put(models: &Path, name: &str, manifest: &str, library: Option<&str>) {
    let folder = models.join(name);
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join(format!("{name}.plugin.toml")), manifest).unwrap();
    if let Some(text) = library {
        fs::write(folder.join(library_name()), text).unwrap();
    }
}

/// Each bad plugin's name with what its reason says.
const BAD: [(&str, &[&str]); 6] = [
    ("future", &["ABI 99.0", "ABI 0.0"]),
    ("garbage", &["line 1", "not TOML"]),
    ("lost", &["its library is neither"]),
    ("needy", &["teleport@1", "does not have"]),
    ("newer", &["norm@77", "norm@1"]),
    ("texty", &["not a shared library"]),
];

/// A folder with olmoe and every bad plugin.
fn mixed() -> TempDir {
    let folder = fresh();
    let models = folder.path();
    let as_id = |id: &str| manifest().replace(r#"id = "olmoe""#, &format!("id = \"{id}\""));
    copy_plugin(models);
    put(models, "future", &as_id("future").replace(r#"abi = "0.0""#, r#"abi = "99.0""#), Some("x"));
    put(models, "garbage", "\u{1b}[2J = = {", Some("x"));
    put(models, "lost", &as_id("lost").replace("coli_olmoe", "coli_lost"), None);
    put(models, "needy", &as_id("needy").replace("norm@1", "teleport@1"), Some("x"));
    put(models, "newer", &as_id("newer").replace("norm@1", "norm@77"), Some("x"));
    put(models, "texty", &as_id("texty"), Some("some text in the place of a library, long enough that it could hold a header of one"));
    folder
}

#[test]
fn the_source_trees_plugin_is_listed_as_accepted() {
    let finished = Run::coli(["plugins"]).finish().succeeded();
    assert_eq!(finished.stdout.lines().count(), 1, "{finished:#?}");
    says(&finished.stdout, &["olmoe", env!("CARGO_PKG_VERSION"), "accepted", "serves model types olmoe", "olmoe.plugin.toml"]);
    assert_eq!(finished.stderr, "");
}

#[test]
fn the_json_list_has_every_fact_of_a_plugin() {
    let list = Run::coli(["plugins", "--json"]).finish().json();
    let [plugin] = list.as_array().unwrap().as_slice() else { panic!("{list}") };
    let expected = [("id", "olmoe"), ("version", env!("CARGO_PKG_VERSION")), ("abi", "0.0"), ("state", "accepted")];
    for (key, value) in expected {
        assert_eq!(plugin[key], value, "{key}");
    }
    assert_eq!(plugin["model_types"], serde_json::json!(["olmoe"]));
    assert_eq!(plugin["gguf_architectures"], serde_json::json!([]));
    for (key, end) in [("manifest", "olmoe.plugin.toml".to_string()), ("library", library_name())] {
        let path = Path::new(plugin[key].as_str().unwrap());
        assert!(path.is_absolute() && path.is_file() && path.ends_with(&end), "{key}: {}", path.display());
    }
}

#[test]
fn a_refused_plugin_is_one_line_with_its_reason_and_no_failure() {
    let folder = mixed();
    let finished = Run::coli(["plugins"]).env("COLI_PLUGIN_PATH", folder.path()).finish().succeeded();
    let lines: Vec<&str> = finished.stdout.lines().collect();
    // Every bad one, olmoe, and the source tree's olmoe.
    assert_eq!(lines.len(), BAD.len() + 2, "{finished:#?}");
    let with = |state: &str| lines.iter().copied().filter(|line| line.contains(&format!(" {state} "))).collect::<Vec<_>>();
    assert_eq!(with("refused").len(), BAD.len(), "{finished:#?}");
    for (name, reason) in BAD {
        let path = format!("{name}.plugin.toml]");
        let line = with("refused").into_iter().find(|line| line.ends_with(&path)).unwrap_or_else(|| panic!("{name}: {finished:#?}"));
        says(line, reason);
    }
    let [accepted] = with("accepted")[..] else { panic!("{finished:#?}") };
    says(accepted, &["olmoe", folder.path().to_str().unwrap()]);
    assert!(!finished.stdout.contains('\u{1b}'), "control characters of a manifest must not reach a terminal");
}

#[test]
fn the_json_list_has_the_same_states_and_reasons() {
    let folder = mixed();
    let list = Run::coli(["plugins", "--json"]).env("COLI_PLUGIN_PATH", folder.path()).finish().json();
    let find = |name: &str| {
        let end = format!("{name}/{name}.plugin.toml");
        let here = folder.path().to_str().unwrap();
        let mine = |plugin: &&Value| plugin["manifest"].as_str().is_some_and(|path| path.starts_with(here) && path.ends_with(&end));
        list.as_array().unwrap().iter().find(mine).unwrap_or_else(|| panic!("{name}: {list:#}"))
    };
    for (name, reason) in BAD {
        assert_eq!(find(name)["state"], "refused", "{name}");
        says(find(name)["reason"].as_str().unwrap(), reason);
        assert_eq!(find(name)["origin"], "COLI_PLUGIN_PATH");
    }
    assert_eq!(find("garbage")["id"], Value::Null);
    assert_eq!(find("olmoe")["state"], "accepted");
}

#[test]
fn bad_plugins_do_not_keep_a_model_from_its_own() {
    let folder = mixed();
    let run = Run::coli(["run", "Elizabeth", "--temp", "0", "-n", "4"]).env("COLI_PLUGIN_PATH", folder.path());
    assert_eq!(run.finish().succeeded().stdout, ", and the others");
}

#[test]
fn a_refused_plugin_that_is_asked_for_says_why() {
    let folder = mixed();
    for (name, reason) in BAD.into_iter().filter(|(name, _)| *name != "garbage") {
        let run = Run::coli(["run", "x", "--model-plugin", name]).env("COLI_PLUGIN_PATH", folder.path());
        says(&run.finish().failed(3), &[&[name], reason].concat());
    }
    let garbage = folder.path().join("garbage");
    says(&Run::coli(["run", "x", "--model-plugin"]).arg(&garbage).finish().failed(3), &["garbage.plugin.toml", "not TOML"]);
}

#[test]
fn only_a_refused_plugin_for_the_model_is_named_with_its_reason() {
    let folder = fresh();
    put(folder.path(), "olmoe", &manifest().replace("norm@1", "teleport@1"), None);
    let run = Run::coli(["run", "x"]).env("COLI_PLUGIN_PATH", folder.path());
    says(&run.finish().failed(3), &["`olmoe`", "plugin olmoe would serve it but is refused", "teleport@1"]);
}

#[test]
fn folders_that_do_not_exist_are_no_failure() {
    let folder = fresh();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let path = std::env::join_paths([folder.path().join("absent"), file.clone()]).unwrap();
    let finished = Run::coli(["plugins"]).env("COLI_PLUGIN_PATH", &path).finish().succeeded();
    assert_eq!(finished.stdout.lines().count(), 1, "{finished:#?}");
    says(&finished.stdout, &["olmoe", "accepted"]);
    let finished = Run::coli(["run", "-v", "Elizabeth", "-n", "1"]).env("COLI_PLUGIN_PATH", &path).finish();
    assert_eq!(finished.code, Some(0));
    says(&finished.stderr, &[file.to_str().unwrap(), "cannot be searched"]);
}
