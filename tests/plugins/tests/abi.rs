//! Libraries that were built with another plugin-api. `abi_*/change.toml` says how each differs from ours.
//!
//! `abi_older_minor` is the plugin-api of minor version 0, without the optional field that 1 added, and the loader of `abi_newer_minor` is
//! a host that is newer than ours.
#![allow(clippy::unwrap_used)]

use coli_test_cli::{Run, says};
use coli_test_plugins::folder::{Folder, Stated};
use coli_test_plugins::libraries::{self, file};
use coli_test_plugins::model::Model;
use serde_json::Value;

#[test]
fn another_layout_is_refused_with_what_differs() {
    let cases: &[(&str, &[&str])] = &[
        ("abi_extra_field", &["expected field_name:write", "found field_name:additional"]),
        ("abi_renamed_field", &["expected field_name:panic_unwind", "found field_name:unwinds"]),
        ("abi_method_in_the_middle", &["expected field_name:", "found field_name:"]),
    ];
    for (name, parts) in cases {
        let folder = Folder::hostile(&libraries::variation(name));
        let reason = [&["was built with another layout of the plugin ABI"], *parts].concat();
        let finished = folder.coli(&["plugins"]).finish().succeeded();
        let line = finished.stdout.lines().find(|line| line.starts_with("hostile ")).unwrap_or_else(|| panic!("{finished:#?}"));
        says(line, &[&[" refused "], &reason[..]].concat());
        says(&folder.eval(&Model::sound()).finish().failed(3), &[&["plugin hostile: "], &reason[..]].concat());
    }
}

#[test]
fn a_newer_minor_version_loads_and_runs() {
    let folder = Folder::new();
    folder.put(&Stated { abi: "0.2", ..Stated::HOSTILE }, &libraries::variation("abi_newer_minor"));
    let finished = folder.coli(&["plugins"]).finish().succeeded();
    let line = finished.stdout.lines().find(|line| line.starts_with("hostile "));
    says(line.unwrap_or_default(), &[" accepted "]);
    Model::sound().evaluate(&folder);
}

#[test]
fn an_older_minor_version_loads() {
    let loader = libraries::loader("abi_newer_minor");
    let older = libraries::variation("abi_older_minor");
    let cases = [("0.0", older.clone()), ("0.1", libraries::hostile()), ("0.2", libraries::variation("abi_newer_minor"))];
    for (abi, library) in cases {
        let folder = Folder::new();
        let copy = folder.put(&Stated { abi, ..Stated::HOSTILE }, &library);
        let manifest = copy.with_file_name("hostile.plugin.toml");
        let answer = Run::of(&loader, [manifest, copy]).finish().json();
        assert_eq!(answer["refused"], Value::Null, "{abi}: {answer}");
    }
    let folder = Folder::new();
    folder.put(&Stated { abi: "0.0", ..Stated::HOSTILE }, &older);
    let finished = folder.coli(&["plugins"]).finish().succeeded();
    says(finished.stdout.lines().find(|line| line.starts_with("hostile ")).unwrap_or_default(), &[" accepted "]);
    Model::sound().evaluate(&folder);
    let folder = Folder::hostile(&libraries::variation("abi_renamed_field"));
    let paths = ["hostile.plugin.toml".to_string(), file("hostile")].map(|name| folder.path().join("hostile").join(name));
    says(Run::of(&loader, paths).finish().json()["refused"].as_str().unwrap(), &["another layout", "unwinds"]);
}

#[test]
fn a_minor_version_must_be_the_one_of_the_manifest() {
    let folder = Folder::hostile(&libraries::variation("abi_newer_minor"));
    says(&folder.eval(&Model::sound()).finish().failed(3), &["states ABI minor version 2, and its manifest states 1"]);
}
