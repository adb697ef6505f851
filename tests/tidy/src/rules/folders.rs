//! What folders must hold: ops, formats, models; and that the map names every crate.

use super::edges::MAP as DOCUMENT;
use super::{Rule, breaches};
use crate::manifest::Workspace;
use crate::source::Source;
use crate::tree::Tree;

const OPS_DIR: &str = "shaders/src/ops";
const FORMATS_DIR: &str = "shaders/src/formats";

pub(super) const OPS: Rule = Rule {
    name: "op_folders",
    advice: "an op is a folder in shaders/src/ops with mod.rs, cpu.rs and cases.rs, and two lines in ops/mod.rs: `pub mod` and `OpEntry`",
    check: |tree| {
        library_folders(tree, OPS_DIR, &["mod.rs", "cpu.rs", "cases.rs"], |source, name| {
            let entry = source.find(&["OpEntry", "::", "of", "::", "<"]).any(|at| source.reads(at + 5, &[name, "::"]));
            (!entry).then(|| format!("`OpEntry::of::<{name}::...>`"))
        })
    },
};

pub(super) const FORMATS: Rule = Rule {
    name: "format_folders",
    advice: "a weight format is a folder in shaders/src/formats with mod.rs, its `mod` in formats/mod.rs, and an entry in a file there \
             or constants of its own",
    check: |tree| {
        let direct =
            |path: &str| path.strip_prefix(FORMATS_DIR).is_some_and(|rest| rest.ends_with(".rs") && rest.matches('/').count() == 1);
        let files: Vec<Source<'_>> = tree.rust().filter(|(file, _)| direct(&file.path)).map(|(_, source)| source).collect();
        library_folders(tree, FORMATS_DIR, &["mod.rs"], |_, name| {
            let own = Source::new(tree.text(&format!("{FORMATS_DIR}/{name}/mod.rs"))).find(&["impl", "Format"]).count() > 0;
            let used = own || files.iter().any(|source| source.find(&[name, "::"]).count() > 0);
            (!used).then(|| format!("entry of `{name}::`"))
        })
    },
};

/// Folders of the op library, against what each must hold and the lines that its parent must have.
fn library_folders(tree: &Tree, parent: &str, files: &[&str], entry: impl Fn(&Source<'_>, &str) -> Option<String>) -> Vec<String> {
    let index = format!("{parent}/mod.rs");
    let source = Source::new(tree.text(&index));
    let mut found = Vec::new();
    for name in tree.folders(parent) {
        let missing = files.iter().map(|file| format!("{parent}/{name}/{file}")).filter(|path| tree.get(path).is_none());
        found.extend(missing.map(|path| format!("{path}: is missing")));
        if source.find(&["mod", name, ";"]).count() == 0 {
            found.push(format!("{index}: has no `mod {name};`"));
        }
        found.extend(entry(&source, name).map(|line| format!("{index}: has no {line}")));
    }
    found
}

pub(super) const MODELS: Rule = Rule {
    name: "model_folders",
    advice: "a model is a folder in models/ with one *.plugin.toml, README.md, src/lib.rs and golden/<case>/, each case with gate.toml",
    check: |tree| tree.folders("models").into_iter().filter(|name| *name != "blocks").flat_map(|name| model(tree, name)).collect(),
};

fn model(tree: &Tree, name: &str) -> Vec<String> {
    let dir = format!("models/{name}");
    let manifests = tree
        .files()
        .filter(|file| file.path.strip_suffix(file.name()) == Some(&format!("{dir}/")) && file.name().ends_with(".plugin.toml"));
    let mut found = Vec::new();
    match manifests.count() {
        1 => {}
        count => found.push(format!("{dir}: has {count} *.plugin.toml, not 1")),
    }
    let golden = format!("{dir}/golden");
    let cases = tree.folders(&golden);
    if cases.is_empty() {
        found.push(format!("{golden}: has no case"));
    }
    let mut wanted = vec![format!("{dir}/README.md"), format!("{dir}/src/lib.rs")];
    wanted.extend(cases.iter().map(|case| format!("{golden}/{case}/gate.toml")));
    found.extend(wanted.iter().filter(|path| tree.get(path).is_none()).map(|path| format!("{path}: is missing")));
    found
}

pub(super) const MAP: Rule = Rule {
    name: "crates_in_map",
    advice: "every crate stands in docs/ARCHITECTURE.md, section 3, with what it is for and what it must not know; test crates by name in \
             the line that begins with `tests/*`",
    check: |tree| breaches(map(tree)),
};

fn map(tree: &Tree) -> Result<Vec<String>, String> {
    let workspace = Workspace::read(tree)?;
    let map = section(tree.text(DOCUMENT), "Code map");
    let tests = map.split("\n- ").find(|item| item.starts_with("`tests/*`")).unwrap_or_default();
    let is_named = |dir: &str| match dir.strip_prefix("tests/") {
        Some(name) => tests.contains(&format!("`{name}`")),
        None => map.contains(&format!("\n- `{dir}`")),
    };
    let missing = workspace.crates.iter().filter(|member| !is_named(&member.dir));
    Ok(missing.map(|member| format!("{DOCUMENT}: section \"Code map\" does not name {}", member.dir)).collect())
}

/// The text under the heading that ends with these words, up to the next one.
fn section<'a>(document: &'a str, heading: &str) -> &'a str {
    let Some(start) = document.find(&format!("{heading}\n")) else { return "" };
    let rest = &document[start..];
    &rest[..rest.find("\n## ").unwrap_or(rest.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_op_without_a_part() {
        let index = "pub mod a;\npub mod b;\nvec![OpEntry::of::<a::A>(), OpEntry::of::<c::C>()]";
        let tree = Tree::of(&[
            ("shaders/src/ops/mod.rs", index),
            ("shaders/src/ops/a/mod.rs", ""),
            ("shaders/src/ops/a/cpu.rs", ""),
            ("shaders/src/ops/a/cases.rs", ""),
            ("shaders/src/ops/b/mod.rs", ""),
            ("shaders/src/ops/b/cases.rs", ""),
            ("shaders/src/ops/c/mod.rs", ""),
            ("shaders/src/ops/c/cpu.rs", ""),
            ("shaders/src/ops/c/cases.rs", ""),
        ]);
        let expected = [
            "shaders/src/ops/b/cpu.rs: is missing",
            "shaders/src/ops/mod.rs: has no `OpEntry::of::<b::...>`",
            "shaders/src/ops/mod.rs: has no `mod c;`",
        ];
        assert_eq!((OPS.check)(&tree), expected);
    }

    #[test]
    fn a_format_without_a_part() {
        let tree = Tree::of(&[
            ("shaders/src/formats/mod.rs", "mod a;\nmatch self { Self::A => &a::ENTRY }\n// mod b; b::ENTRY"),
            ("shaders/src/formats/a/mod.rs", ""),
            ("shaders/src/formats/b/cpu.rs", ""),
        ]);
        let expected = [
            "shaders/src/formats/b/mod.rs: is missing",
            "shaders/src/formats/mod.rs: has no `mod b;`",
            "shaders/src/formats/mod.rs: has no entry of `b::`",
        ];
        assert_eq!((FORMATS.check)(&tree), expected);
    }

    #[test]
    fn a_model_without_a_part() {
        let tree = Tree::of(&[
            ("models/blocks/src/lib.rs", ""),
            ("models/a/a.plugin.toml", ""),
            ("models/a/README.md", ""),
            ("models/a/src/lib.rs", ""),
            ("models/a/golden/x/gate.toml", ""),
            ("models/a/golden/y/config.json", ""),
            ("models/b/sub/b.plugin.toml", ""),
        ]);
        let expected = [
            "models/a/golden/y/gate.toml: is missing",
            "models/b: has 0 *.plugin.toml, not 1",
            "models/b/golden: has no case",
            "models/b/README.md: is missing",
            "models/b/src/lib.rs: is missing",
        ];
        assert_eq!((MODELS.check)(&tree), expected);
    }

    #[test]
    fn a_crate_that_the_map_does_not_have() {
        let crates: [(&str, &str, &[&str]); 4] =
            [("host/a", "a", &[]), ("host/b", "b", &[]), ("tests/a", "ta", &[]), ("tests/b", "tb", &[])];
        let document =
            "## 3. Code map\n\nText `host/b`.\n\n- `host/a`: `b`.\n- `tests/*`: `a` (that),\n  and more.\n\n## 4. More\n- `host/b`\n";
        let tree = super::super::edges::tests::workspace(document, &crates);
        let expected = ["host/b", "tests/b"].map(|dir| format!("docs/ARCHITECTURE.md: section \"Code map\" does not name {dir}"));
        assert_eq!((MAP.check)(&tree), expected);
    }
}
