//! Builds the libraries of the tests: the hostile plugin, the same with another plugin-api, and libraries that are no plugins; and the
//! host's loader with another plugin-api.

use std::collections::BTreeMap;
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX, EXE_SUFFIX};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use coli_test_common::built;

/// The hostile plugin's folder from the root of the source tree.
const HOSTILE: &str = "tests/plugins/hostile";
/// That of the loader.
const LOADER: &str = "tests/plugins/loader";
/// What those two are built from.
const SOURCES: [&str; 6] = ["plugin-api", "shaders", "host/base", "host/plugins", HOSTILE, LOADER];
const STEM: &str = "coli_hostile";

/// The hostile plugin, with the plugin-api of this source tree.
pub fn hostile() -> PathBuf {
    once(STEM, || library(&built::root(), "coli-hostile", STEM, &[]))
}

/// The hostile plugin, in which a panic ends the process.
pub fn aborting() -> PathBuf {
    once("coli_aborting", || library(&built::root(), "coli-aborting", "coli_aborting", &["--", "-C", "panic=abort"]))
}

/// The hostile plugin with the plugin-api that `tests/plugins/<name>/change.toml` makes of ours.
pub fn variation(name: &str) -> PathBuf {
    let stem = format!("coli_{name}");
    once(&stem, || library(&vary(name), "coli-hostile", &stem, &[]))
}

/// A program that is the host's loader with that plugin-api.
pub fn loader(variation: &str) -> PathBuf {
    once(&format!("loader of {variation}"), || {
        cargo(&vary(variation).join(LOADER), &["--bin", "coli-loader"]);
        built_file(&format!("coli-loader{EXE_SUFFIX}"))
    })
}

/// A library from one C file in `hostile/libraries`, made by the compiler that Rust links with.
pub fn plain(name: &str) -> PathBuf {
    once(name, || {
        let source = built::root().join(HOSTILE).join("libraries").join(format!("{name}.c"));
        let library = target().join(file(name));
        fs::create_dir_all(target()).unwrap();
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-O1", "-Wl,-z,lazy", "-o"]).arg(&library).arg(&source);
        finish(command);
        library
    })
}

/// The name of a library's file.
pub fn file(stem: &str) -> String {
    format!("{DLL_PREFIX}{stem}{DLL_SUFFIX}")
}

/// The second target folder.
fn target() -> PathBuf {
    built::home().parent().unwrap().join("plugins")
}

/// Builds a library the first time that this process asks for it. Others wait: their own would wait for cargo anyhow.
fn once(key: &str, build: impl FnOnce() -> PathBuf) -> PathBuf {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    // A build that failed leaves the list as it was.
    let mut known = BUILT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    known.entry(key.into()).or_insert_with(build).clone()
}

/// Builds a package of the hostile workspace in a source tree.
fn library(root: &Path, package: &str, stem: &str, more: &[&str]) -> PathBuf {
    cargo(&root.join(HOSTILE), &[&["--lib", "--package", package], more].concat());
    built_file(&file(stem))
}

/// Builds in a workspace.
fn cargo(workspace: &Path, what: &[&str]) {
    let mut command = Command::new("cargo");
    command.args(["rustc", "--quiet", "--release", "--locked", "--manifest-path"]).arg(workspace.join("Cargo.toml"));
    command.arg("--target-dir").arg(target()).args(what).current_dir(built::root());
    finish(command);
}

fn built_file(name: &str) -> PathBuf {
    let path = target().join("release").join(name);
    assert!(path.is_file(), "{} was not built", path.display());
    path
}

fn finish(mut command: Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Makes a source tree with another plugin-api: what the two workspaces need, changed as the file says. Files that are right already
/// are left alone, so that cargo finds them unchanged.
fn vary(name: &str) -> PathBuf {
    let (from, to) = (built::root(), target().join("variations").join(name));
    let mut files = BTreeMap::new();
    for folder in SOURCES {
        read(&from, Path::new(folder), &mut files);
    }
    let root = fs::read_to_string(from.join("Cargo.toml")).unwrap();
    let line = |line: &str| match line.split(" = ").next() {
        Some("members") => r#"members = ["plugin-api", "shaders", "host/*"]"#.to_string(),
        Some("exclude") => r#"exclude = ["tests"]"#.to_string(),
        _ => line.to_string(),
    };
    files.insert("Cargo.toml".into(), root.lines().map(|text| line(text) + "\n").collect::<String>().into_bytes());
    // Libraries lie in one folder, and cargo must not take one for another.
    replace(&mut files, &format!("{HOSTILE}/Cargo.toml"), &format!("name = \"{STEM}\""), &format!("name = \"coli_{name}\""));
    let changes = fs::read_to_string(from.join("tests/plugins").join(name).join("change.toml")).unwrap();
    let changes: toml::Table = changes.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
    for change in changes["replace"].as_array().unwrap() {
        let text = |key: &str| change[key].as_str().unwrap();
        replace(&mut files, text("file"), text("old"), text("new"));
    }
    for (path, bytes) in files {
        let path = to.join(path);
        if fs::read(&path).ok().as_ref() != Some(&bytes) {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, bytes).unwrap();
        }
    }
    to
}

/// Puts `new` in the one place where the file has `old`.
fn replace(files: &mut BTreeMap<PathBuf, Vec<u8>>, path: &str, old: &str, new: &str) {
    let bytes = files.get_mut(Path::new(path)).unwrap_or_else(|| panic!("there is no {path}"));
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert_eq!(text.matches(old).count(), 1, "{path} has changed: adapt the change.toml that replaces in it:\n{old}");
    *bytes = text.replace(old, new).into_bytes();
}

/// The files below a folder, by their paths from `root`.
fn read(root: &Path, folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(root.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = folder.join(entry.file_name());
        if !entry.file_type().unwrap().is_dir() {
            files.insert(path, fs::read(entry.path()).unwrap());
        } else if entry.file_name() != "target" {
            read(root, &path, files);
        }
    }
}
