//! Holds every rule over the repository. A failure lists every breach and says what to do.

use std::sync::LazyLock;

use coli_test_tidy::Tree;
use coli_test_tidy::rules::{RULES, Rule};

static TREE: LazyLock<Tree> = LazyLock::new(|| Tree::read(&coli_test_common::built::root()).expect("the files can be read"));

macro_rules! hold {
    ($($rule:ident),* $(,)?) => {
        $(#[test]
        fn $rule() {
            if let Some(report) = Rule::named(stringify!($rule)).unwrap().report(&TREE) {
                panic!("{report}");
            }
        })*

        const HELD: &[&str] = &[$(stringify!($rule)),*];
    };
}

hold! {
    module_docs,
    file_budget,
    function_budget,
    line_width,
    exceptions,
    model_names,
    environment,
    build_environment,
    fenced_crates,
    threads,
    printing,
    unsafe_fence,
    safety_comments,
    crate_edges,
    dependency_versions,
    dependency_record,
    op_folders,
    format_folders,
    model_folders,
    crates_in_map,
    machine_paths,
    markers,
    whitespace,
    sizes,
    generated_docs,
}

#[test]
fn every_rule_is_held() {
    let rules: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(HELD, rules);
}

#[test]
fn the_tree_is_the_repository() {
    for path in ["Cargo.toml", "shaders/src/ops/mod.rs", "models/olmoe/demo/model.safetensors", "docs/ARCHITECTURE.md"] {
        assert!(TREE.get(path).is_some(), "{path}");
    }
    assert!(TREE.get("host/plugins/src/load_tests.rs").unwrap().test);
}
