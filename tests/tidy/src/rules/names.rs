//! Model names stay out of what serves all models.
//!
//! The names are those of the folders in `models/` and what the manifests there serve. In `shaders` and `host/chain` no code, shader or
//! variant list has one, in tests neither. In `plugin-api` and the other host crates only test code may: there a real plugin is the best
//! example. Case files say which implementation gave the numbers, so data is no business of this rule.

use toml::Value;

use super::Rule;
use crate::items;
use crate::manifest;
use crate::tree::{File, Tree};

pub(super) const MODEL_NAMES: Rule = Rule {
    name: "model_names",
    advice: "name the mathematics or the rule, not the model. In shaders and host/chain no file has a model's name; in the other host \
             crates and plugin-api only tests do",
    check: |tree| {
        let names = names(tree);
        tree.files().flat_map(|file| lines_with_names(file, &names)).collect()
    },
};

/// The models' names, in lower case.
fn names(tree: &Tree) -> Vec<String> {
    let folders = tree.folders("models").into_iter().filter(|folder| *folder != "blocks");
    let mut names: Vec<String> = folders.map(str::to_lowercase).collect();
    for file in tree.files().filter(|file| file.path.starts_with("models/") && file.name().ends_with(".plugin.toml")) {
        // A manifest that cannot be read is a breach of another rule.
        let Ok(table) = manifest::table(tree, &file.path) else { continue };
        for served in ["model_types", "gguf_architectures"].iter().filter_map(|key| table.get(*key).and_then(Value::as_array)) {
            names.extend(served.iter().filter_map(Value::as_str).map(str::to_lowercase));
        }
    }
    names.sort();
    names.dedup();
    names
}

/// What files call ways to cut words, some of which have a model's name: there they are data.
const WORD_CUTS: &str = "host/text/src/gguf/pre.rs";

/// Whether the rule reads the file, and whether its tests may have names.
fn reach(file: &File) -> Option<bool> {
    if file.path == WORD_CUTS {
        return None;
    }
    let code = ["rs", "comp", "glsl", "toml"].contains(&file.extension());
    let strict = ["shaders/", "host/chain/"].iter().any(|place| file.path.starts_with(place));
    let lenient = ["host/", "plugin-api/"].iter().any(|place| file.path.starts_with(place));
    (code && (strict || lenient)).then_some(!strict)
}

fn lines_with_names(file: &File, names: &[String]) -> Vec<String> {
    let Some(in_tests) = reach(file) else { return Vec::new() };
    if in_tests && file.test {
        return Vec::new();
    }
    let exempt = if in_tests { file.rust().map(|source| items::test_lines(&source)).unwrap_or_default() } else { Vec::new() };
    let mut found = Vec::new();
    for (index, line) in file.text().lines().enumerate() {
        let lower = line.to_lowercase();
        let named = names.iter().find(|name| lower.contains(name.as_str()));
        if let Some(name) = named.filter(|_| !exempt.iter().any(|lines| lines.contains(&(index + 1)))) {
            found.push(format!("{}:{}: names the model `{name}`", file.path, index + 1));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_an_op_the_chain_or_the_host() {
        let manifest = ("models/foo/foo.plugin.toml", "model_types = [\"foo\", \"bar_moe\"]\ngguf_architectures = [\"BAZ\"]\n");
        let tests = "fn a() {}\n#[cfg(test)]\nmod tests {\n    const A: &str = \"foo\";\n}\n";
        let tree = Tree::of(&[
            manifest,
            ("models/blocks/src/lib.rs", ""),
            ("models/foo/src/lib.rs", "// foo\n"),
            ("shaders/src/ops/a/mod.rs", "//! As in Foo.\n"),
            ("shaders/src/ops/a/a.comp", "void baz_rows() {}\n"),
            ("shaders/src/ops/a/cases.json", "\"from FooExperts\"\n"),
            ("host/chain/src/cpu.rs", tests),
            ("host/app/src/run.rs", tests),
            ("host/app/src/help.rs", "fn bar_moe() {}\n// blocks\n"),
        ]);
        let expected = [
            "host/app/src/help.rs:1: names the model `bar_moe`",
            "host/chain/src/cpu.rs:4: names the model `foo`",
            "shaders/src/ops/a/a.comp:1: names the model `baz`",
            "shaders/src/ops/a/mod.rs:1: names the model `foo`",
        ];
        assert_eq!((MODEL_NAMES.check)(&tree), expected);
    }
}
