//! Which of our crates may import which: what docs/ARCHITECTURE.md says, read from there, so that the document cannot drift.
//!
//! A line is `a, b -> c -> d`: each name may import every name to its right. `models/<m>` is any model, `tests` any test crate, another
//! name a host crate, or `plugin-api`, `shaders` or `models/blocks`. `all of host` and `anything` are what they say; words in brackets
//! and behind `;` are for people. An import that stands there by name and that no manifest has is a breach as well.

use std::collections::{BTreeMap, BTreeSet};

use super::{Rule, breaches};
use crate::manifest::Workspace;
use crate::tree::Tree;

pub(super) const MAP: &str = "docs/ARCHITECTURE.md";
const HEADING: &str = "Who may import whom";

pub(super) const EDGES: Rule = Rule {
    name: "crate_edges",
    advice: "take the import out, or change docs/ARCHITECTURE.md, section 4, with the reason in the commit; an import listed there that \
             nobody needs goes out of the document",
    check: |tree| breaches(check(tree)),
};

fn check(tree: &Tree) -> Result<Vec<String>, String> {
    let workspace = Workspace::read(tree)?;
    let labels: BTreeSet<String> = workspace.crates.iter().map(|member| label(&member.dir)).collect();
    let allowed = Allowed::read(tree.text(MAP), &labels)?;
    let mut found = Vec::new();
    let mut used: BTreeMap<(String, String), ()> = BTreeMap::new();
    for member in &workspace.crates {
        for dependency in &member.dependencies {
            let Some(target) = workspace.named(&dependency.name) else { continue };
            let edge = (label(&member.dir), label(&target.dir));
            let known = allowed.named.contains(&edge) || allowed.general.contains(&edge);
            // A model never imports another, nor anything a test crate.
            if !known || edge.0 == MODEL && edge.1 == MODEL {
                found.push(format!("{}/Cargo.toml: imports {}, and {MAP} has no `{} -> {}`", member.dir, target.name, edge.0, edge.1));
            }
            used.insert(edge, ());
        }
    }
    let idle = allowed.direct.iter().filter(|edge| !used.contains_key(*edge));
    found.extend(idle.map(|(from, to)| format!("{MAP}: lists `{from} -> {to}`, which no manifest has")));
    Ok(found)
}

const MODEL: &str = "models/<m>";

/// A crate's name in the document.
fn label(dir: &str) -> String {
    match dir.split_once('/') {
        Some(("host", name)) => name.into(),
        Some(("tests", _)) => "tests".into(),
        Some(("models", name)) if name != "blocks" => MODEL.into(),
        _ => dir.into(),
    }
}

type Edges = BTreeSet<(String, String)>;

/// What the document allows.
#[derive(Default)]
struct Allowed {
    /// Imports by name, those along a chain as well.
    named: Edges,
    /// Of these the ones between neighbours.
    direct: Edges,
    /// Imports by `all of host` and `anything`.
    general: Edges,
}

impl Allowed {
    fn read(document: &str, labels: &BTreeSet<String>) -> Result<Self, String> {
        let mut allowed = Self::default();
        for line in block(document)? {
            let line = without_brackets(line.split(';').next().unwrap_or_default());
            let steps: Vec<Vec<&str>> = line.split("->").map(|step| step.split(',').map(str::trim).collect()).collect();
            let neighbours = |from: usize, to: usize| to == from + 1;
            for from in 0..steps.len() {
                for to in from + 1..steps.len() {
                    allowed.step(&steps[from], &steps[to], neighbours(from, to), labels)?;
                }
            }
        }
        Ok(allowed)
    }

    fn step(&mut self, from: &[&str], to: &[&str], direct: bool, labels: &BTreeSet<String>) -> Result<(), String> {
        for from in from {
            known(from, labels)?;
            for to in to {
                let edge = |to: &str| (from.to_string(), to.to_string());
                match *to {
                    "anything" => self.general.extend(labels.iter().map(|label| edge(label))),
                    "all of host" => self.general.extend(labels.iter().filter(|label| is_host(label)).map(|label| edge(label))),
                    name => {
                        known(name, labels)?;
                        self.named.insert(edge(name));
                        if direct {
                            self.direct.insert(edge(name));
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn known(name: &str, labels: &BTreeSet<String>) -> Result<(), String> {
    if labels.contains(name) { Ok(()) } else { Err(format!("{MAP}: `{name}` under \"{HEADING}\" is no crate of the workspace")) }
}

fn is_host(label: &str) -> bool {
    !["plugin-api", "shaders", "tests"].contains(&label) && !label.contains('/')
}

/// The lines of the first block under the heading.
fn block(document: &str) -> Result<Vec<&str>, String> {
    let lines = document.lines().skip_while(|line| !(line.starts_with('#') && line.ends_with(HEADING)));
    let block: Vec<&str> = lines.skip_while(|line| !line.starts_with("```")).skip(1).take_while(|line| !line.starts_with("```")).collect();
    if block.is_empty() { Err(format!("{MAP}: has no block under \"{HEADING}\"")) } else { Ok(block) }
}

fn without_brackets(line: &str) -> String {
    let mut depth = 0usize;
    let mut outside = String::new();
    for c in line.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if depth == 0 => outside.push(c),
            _ => {}
        }
    }
    outside
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const DOCUMENT: &str = "## 4. Who may import whom\n\nText.\n```\nmodels/<m> -> shaders -> plugin-api\napp -> all of host\n\
                            plugins -> plugin-api (views, all), base\ntests -> anything; nothing imports tests\n```\n";

    /// A workspace of these crates, each with what it imports.
    pub(crate) fn workspace(document: &str, crates: &[(&str, &str, &[&str])]) -> Tree {
        let members: Vec<String> = crates.iter().map(|(dir, ..)| format!("{dir:?}")).collect();
        let root = format!("[workspace]\nmembers = [{}]\n", members.join(", "));
        let mut files = vec![("Cargo.toml".to_string(), root), (MAP.to_string(), document.to_string())];
        for (dir, name, imports) in crates {
            let imports: String = imports.iter().map(|import| format!("{import}.workspace = true\n")).collect();
            files.push((format!("{dir}/Cargo.toml"), format!("[package]\nname = {name:?}\n[dependencies]\n{imports}")));
        }
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        Tree::of(&files)
    }

    fn verdict(document: &str, plugins: &[&str], olmoe: &[&str]) -> Vec<String> {
        let crates: [(&str, &str, &[&str]); 8] = [
            ("plugin-api", "api", &[]),
            ("shaders", "shaders", &["api"]),
            ("models/a", "a", olmoe),
            ("models/b", "b", &[]),
            ("host/app", "app", &["plugins", "base"]),
            ("host/plugins", "plugins", plugins),
            ("host/base", "base", &[]),
            ("tests/x", "x", &["app", "a", "api"]),
        ];
        (EDGES.check)(&workspace(document, &crates))
    }

    #[test]
    fn imports_are_those_of_the_document() {
        assert_eq!(verdict(DOCUMENT, &["api", "base"], &["shaders", "api"]), [""; 0]);
        assert!(verdict(DOCUMENT, &["api", "base", "shaders"], &["shaders"])[0].contains("no `plugins -> shaders`"));
        assert!(verdict(DOCUMENT, &["api", "base", "x"], &["shaders"])[0].contains("no `plugins -> tests`"));
        assert!(verdict(DOCUMENT, &["api", "base"], &["shaders", "b"])[0].contains("no `models/<m> -> models/<m>`"));
        assert!(verdict(DOCUMENT, &["api"], &["shaders"])[0].contains("lists `plugins -> base`, which no manifest has"));
        assert!(verdict(DOCUMENT, &["api"], &[]).len() == 2, "both at once");
    }

    #[test]
    fn a_document_that_cannot_be_read() {
        assert!(verdict("## 4. Something else\n", &[], &[])[0].contains("has no block"));
        assert!(verdict(&DOCUMENT.replace("plugins ->", "plugin ->"), &[], &[])[0].contains("`plugin`"));
        assert!((EDGES.check)(&Tree::of(&[]))[0].contains("Cargo.toml"));
    }
}
