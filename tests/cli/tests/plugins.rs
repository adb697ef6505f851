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
    ("future", &["ABI 99.0", "ABI 0.1"]),
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
    put(models, "future", &as_id("future").replace(r#"abi = "0.1""#, r#"abi = "99.0""#), Some("x"));
    put(models, "garbage", "\u{1b}[2J = = {", Some("x"));
    put(models, "lost", &as_id("lost").replace("coli_olmoe", "coli_lost"), None);
    put(models, "needy", &as_id("needy").replace("norm@1", "teleport@1"), Some("x"));
    put(models, "newer", &as_id("newer").replace("norm@1", "norm@77"), Some("x"));
    put(models, "texty", &as_id("texty"), Some("some text in the place of a library, long enough that it could hold a header of one"));
    folder
}

/// The lines of a list that are about other plugins of the source tree than olmoe, which are left out of what tests look at.
fn without_others(list: &str) -> Vec<&str> {
    let others = ids_but_olmoe();
    let (other, lines): (Vec<&str>, Vec<&str>) = list.lines().partition(|line| others.iter().any(|id| line.starts_with(id)));
    assert_eq!(other.len(), others.len(), "{list}");
    lines
}

fn ids_but_olmoe() -> Vec<String> {
    built::plugin_ids().into_iter().filter(|id| id != "olmoe").collect()
}

#[test]
fn the_source_trees_plugins_are_listed_as_accepted() {
    let finished = Run::coli(["plugins"]).finish().succeeded();
    let ids = built::plugin_ids();
    assert!(ids.len() >= 4 && finished.stdout.lines().count() == ids.len(), "{finished:#?}");
    for (line, id) in finished.stdout.lines().zip(&ids) {
        says(line, &[id, env!("CARGO_PKG_VERSION"), "accepted", "serves model types ", &format!("{id}.plugin.toml")]);
    }
    says(&finished.stdout, &["serves model types olmoe"]);
    assert_eq!(finished.stderr, "");
}

#[test]
fn the_json_list_has_every_fact_of_a_plugin() {
    let list = Run::coli(["plugins", "--json"]).finish().json();
    assert_eq!(list.as_array().unwrap().len(), built::plugin_ids().len(), "{list}");
    let plugin = list.as_array().unwrap().iter().find(|plugin| plugin["id"] == "olmoe").unwrap();
    let expected = [("id", "olmoe"), ("version", env!("CARGO_PKG_VERSION")), ("abi", "0.1"), ("state", "accepted")];
    for (key, value) in expected {
        assert_eq!(plugin[key], value, "{key}");
    }
    assert_eq!(plugin["model_types"], serde_json::json!(["olmoe"]));
    assert_eq!(plugin["gguf_architectures"], serde_json::json!(["olmoe"]));
    for (key, end) in [("manifest", "olmoe.plugin.toml".to_string()), ("library", library_name())] {
        let path = Path::new(plugin[key].as_str().unwrap());
        assert!(path.is_absolute() && path.is_file() && path.ends_with(&end), "{key}: {}", path.display());
    }
}

#[test]
fn a_refused_plugin_is_one_line_with_its_reason_and_no_failure() {
    let folder = mixed();
    let finished = Run::coli(["plugins"]).env("COLI_PLUGIN_PATH", folder.path()).finish().succeeded();
    let lines = without_others(&finished.stdout);
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
fn a_named_folder_that_cannot_be_searched_is_an_error_and_listed_as_refused() {
    let folder = fresh();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for (named, why) in [(folder.path().join("absent"), "does not exist"), (file, "cannot be searched")] {
        let path = std::env::join_paths([folder.path(), &named]).unwrap();
        let parts = ["plugin folder", named.to_str().unwrap(), why];
        let error = Run::coli(["run", "Elizabeth", "-n", "1"]).env("COLI_PLUGIN_PATH", &path).finish().failed(2);
        says(&error, &[&parts[..], &["COLI_PLUGIN_PATH"]].concat());
        let listed = Run::coli(["plugins"]).env("COLI_PLUGIN_PATH", &path).finish().succeeded().stdout;
        assert_eq!(without_others(&listed).len(), 2, "{listed}");
        says(listed.lines().next().unwrap(), &[&parts[..], &[" refused "]].concat());
        says(&listed, &["olmoe", "accepted"]);
        fs::write(folder.path().join("coli.toml"), format!("plugin_path = [{:?}]", named.to_str().unwrap())).unwrap();
        let by_file = Run::coli(["run", "Elizabeth", "-n", "1"]).dir(folder.path()).finish().failed(2);
        says(&by_file, &[&parts[..], &["coli.toml"]].concat());
    }
}

#[test]
fn a_folder_that_may_be_missing_is_no_failure() {
    let home = fresh();
    let finished = Run::coli(["plugins"]).env("HOME", home.path()).finish().succeeded();
    assert_eq!(without_others(&finished.stdout).len(), 1, "{finished:#?}");
    fs::create_dir_all(home.path().join(".local/share/coli")).unwrap();
    fs::write(home.path().join(".local/share/coli/models"), "").unwrap();
    let listed = Run::coli(["plugins"]).env("HOME", home.path()).finish().succeeded().stdout;
    says(&listed, &[" refused ", "cannot be searched", "coli/models]"]);
    Run::coli(["run", "Elizabeth", "-n", "1"]).env("HOME", home.path()).finish().succeeded();
}

/// What is there and cannot be looked at, a link that leads nowhere above all, would else look like a plugin that is not installed.
#[cfg(unix)]
#[test]
fn links_that_lead_nowhere_are_listed_as_refused() {
    use std::os::unix::fs::symlink;
    let folder = fresh();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("manifest")).unwrap();
    fs::create_dir_all(at("unrelated")).unwrap();
    fs::write(at("file"), "").unwrap();
    symlink("nowhere", at("manifest/manifest.plugin.toml")).unwrap();
    symlink("nowhere", at("folder")).unwrap();
    symlink("loop", at("loop")).unwrap();
    let listed = Run::coli(["plugins"]).env("COLI_PLUGIN_PATH", folder.path()).finish().succeeded().stdout;
    let refused: Vec<&str> = listed.lines().filter(|line| line.contains(" refused ")).collect();
    assert_eq!(refused.len(), 3, "{listed}");
    for (name, why) in [("manifest", "leads nowhere"), ("folder", "leads nowhere"), ("loop", "symbolic links")] {
        let end = format!("{name}/{name}.plugin.toml]");
        let line = refused.iter().find(|line| line.ends_with(&end)).unwrap_or_else(|| panic!("{name}: {listed}"));
        says(line, &["cannot be read", why]);
    }
}

/// Where the code of a 64-bit library lies in its file: its first segment that may be run.
#[cfg(target_os = "linux")]
fn code(library: &[u8]) -> std::ops::Range<usize> {
    let number = |at: usize, len: usize| library[at..at + len].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte));
    let (start, count) = (number(32, 8), number(56, 2));
    let may_run = |at: &usize| number(*at, 4) == 1 && number(at + 4, 4) & 1 == 1;
    let segment = (0..count).map(|index| start + 56 * index).find(may_run).unwrap();
    let offset = number(segment + 8, 8);
    offset..offset + number(segment + 32, 8)
}

/// As a download leaves it that was broken off after the file's length was set.
#[cfg(target_os = "linux")]
#[test]
fn a_library_with_zeros_in_the_middle_of_its_code_is_refused() {
    let folder = fresh();
    let library = copy_plugin(folder.path()).join(library_name());
    let mut bytes = fs::read(&library).unwrap();
    let code = code(&bytes);
    bytes[code.start + code.len() / 4..code.end - code.len() / 4].fill(0);
    fs::remove_file(&library).unwrap();
    fs::write(&library, bytes).unwrap();
    let parts = [library.to_str().unwrap(), "was not written whole"];
    let listed = Run::coli(["plugins"]).env("COLI_PLUGIN_PATH", folder.path()).finish().succeeded().stdout;
    says(listed.lines().next().unwrap(), &[&["olmoe", " refused "], &parts[..]].concat());
    says(&Run::coli(["run", "x"]).env("COLI_PLUGIN_PATH", folder.path()).finish().failed(3), &parts);
}

#[test]
fn dump_takes_the_plugin_of_the_settings() {
    let dump = || Run::coli(["plugins", "dump", "--segment", "head"]).arg(built::demo());
    let finished = dump().env("COLI_MODEL_PLUGIN", "mixtral").finish();
    says(&finished.failed(3), &["mixtral", &format!("known are {}", built::plugin_ids().join(", "))]);
    let by_option = dump().args(&["--model-plugin", "olmoe"]).env("COLI_MODEL_PLUGIN", "mixtral").finish().succeeded();
    assert_eq!(by_option.stdout, dump().finish().succeeded().stdout);
    let folder = fresh();
    fs::write(folder.path().join("coli.toml"), "model_plugin = \"mixtral\"").unwrap();
    says(&dump().dir(folder.path()).finish().failed(3), &["mixtral"]);
}
