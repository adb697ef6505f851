//! The workspace's Cargo manifests: crates and what they depend on.

use toml::{Table, Value};

use crate::tree::Tree;

/// What a dependency is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// The crate itself.
    Itself,
    /// Its build script.
    Build,
    /// Its tests.
    Tests,
}

/// A line under `[dependencies]` or its like.
#[derive(Debug, Clone)]
pub struct Dependency {
    /// The crate's name.
    pub name: String,
    /// What for.
    pub purpose: For,
    /// Whether its version stands in the workspace's manifest.
    pub workspace: bool,
    /// Whether it is a folder of this repository.
    pub path: bool,
}

/// A crate of the workspace.
#[derive(Debug, Clone)]
pub struct Crate {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub dir: String,
    /// What it depends on.
    pub dependencies: Vec<Dependency>,
}

/// The workspace.
#[derive(Debug, Default)]
pub struct Workspace {
    /// Its crates.
    pub crates: Vec<Crate>,
    /// Crates of this repository that are workspaces of their own.
    pub apart: Vec<Crate>,
    /// The names under `[workspace.dependencies]`.
    pub shared: Vec<String>,
}

impl Workspace {
    /// Reads the manifests of all members.
    pub fn read(tree: &Tree) -> Result<Self, String> {
        let root = table(tree, "Cargo.toml")?;
        let workspace = root.get("workspace").and_then(Value::as_table).ok_or("Cargo.toml: has no [workspace]")?;
        let members = workspace.get("members").and_then(Value::as_array).ok_or("Cargo.toml: has no members")?;
        let excluded: Vec<&str> =
            workspace.get("exclude").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let mut crates = Vec::new();
        for member in members.iter().filter_map(Value::as_str) {
            for dir in dirs(tree, member).into_iter().filter(|dir| !excluded.contains(&dir.as_str())) {
                crates.push(Crate::read(tree, &dir)?);
            }
        }
        let apart = apart(tree, &crates)?;
        let shared = workspace.get("dependencies").and_then(Value::as_table).map(|table| table.keys().cloned().collect());
        Ok(Self { crates, apart, shared: shared.unwrap_or_default() })
    }

    /// The crate with this name.
    pub fn named(&self, name: &str) -> Option<&Crate> {
        self.crates.iter().find(|member| member.name == name)
    }

    /// The members' dependencies on crates from outside, each with the crate that has it.
    pub fn outside(&self) -> impl Iterator<Item = (&Crate, &Dependency)> {
        self.outside_of(&self.crates)
    }

    /// The same of the crates apart.
    pub fn outside_apart(&self) -> impl Iterator<Item = (&Crate, &Dependency)> {
        self.outside_of(&self.apart)
    }

    fn outside_of<'a>(&'a self, crates: &'a [Crate]) -> impl Iterator<Item = (&'a Crate, &'a Dependency)> {
        let all = crates.iter().flat_map(|member| member.dependencies.iter().map(move |dependency| (member, dependency)));
        all.filter(|(_, dependency)| !dependency.path && self.named(&dependency.name).is_none())
    }
}

/// The crates that are no members: those whose manifest has a package.
fn apart(tree: &Tree, members: &[Crate]) -> Result<Vec<Crate>, String> {
    let dirs = tree.files().filter_map(|file| file.path.strip_suffix("/Cargo.toml"));
    let others = dirs.filter(|dir| !members.iter().any(|member| member.dir == *dir));
    others.map(|dir| Crate::read(tree, dir)).collect()
}

/// The folders of a `members` entry: itself, or those below it.
fn dirs(tree: &Tree, member: &str) -> Vec<String> {
    match member.strip_suffix("/*") {
        None => vec![member.into()],
        Some(parent) => tree.folders(parent).into_iter().map(|name| format!("{parent}/{name}")).collect(),
    }
}

/// A TOML file of the tree.
pub fn table(tree: &Tree, path: &str) -> Result<Table, String> {
    let text = tree.get(path).ok_or_else(|| format!("{path}: is missing"))?.text();
    text.parse().map_err(|error| format!("{path}: {error}"))
}

impl Crate {
    fn read(tree: &Tree, dir: &str) -> Result<Self, String> {
        let path = format!("{dir}/Cargo.toml");
        let table = table(tree, &path)?;
        let name = table.get("package").and_then(|package| package.get("name")).and_then(Value::as_str);
        let name = name.ok_or_else(|| format!("{path}: has no package name"))?.to_string();
        let mut dependencies = Vec::new();
        collect(&table, &mut dependencies);
        for target in table.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values) {
            target.as_table().into_iter().for_each(|table| collect(table, &mut dependencies));
        }
        Ok(Self { name, dir: dir.into(), dependencies })
    }
}

fn collect(table: &Table, found: &mut Vec<Dependency>) {
    let sections = [("dependencies", For::Itself), ("build-dependencies", For::Build), ("dev-dependencies", For::Tests)];
    for (section, purpose) in sections {
        for (key, value) in table.get(section).and_then(Value::as_table).into_iter().flatten() {
            let name = value.get("package").and_then(Value::as_str).unwrap_or(key).to_string();
            let workspace = value.get("workspace").and_then(Value::as_bool) == Some(true);
            found.push(Dependency { name, purpose, workspace, path: value.get("path").is_some() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_all_kinds_of_dependencies_are_found() {
        let tree = Tree::of(&[
            ("Cargo.toml", "[workspace]\nmembers = [\"a\", \"host/*\"]\nexclude = [\"host/apart\"]\n[workspace.dependencies]\nx = \"1\""),
            ("a/Cargo.toml", "[package]\nname = \"coli-a\"\n[dependencies]\nx.workspace = true\ny = { package = \"z\", version = \"1\" }"),
            (
                "host/b/Cargo.toml",
                "[package]\nname = \"b\"\n[dev-dependencies]\np = \"1\"\n[target.'cfg(unix)'.build-dependencies]\nq = \"1\"",
            ),
            ("host/apart/Cargo.toml", "[package]\nname = \"apart\"\n[dependencies]\nt = \"1\""),
            ("c/Cargo.toml", "[package]\nname = \"c\"\n[dependencies]\nb = { path = \"../b\" }\nr = \"1\"\ns = { path = \"s\" }"),
        ]);
        let workspace = Workspace::read(&tree).unwrap();
        assert_eq!(workspace.shared, ["x"]);
        let found: Vec<_> =
            workspace.crates.iter().flat_map(|member| &member.dependencies).map(|d| (d.name.as_str(), d.purpose, d.workspace)).collect();
        assert_eq!(found, [("x", For::Itself, true), ("z", For::Itself, false), ("p", For::Tests, false), ("q", For::Build, false)]);
        assert_eq!(workspace.named("b").unwrap().dir, "host/b");
        assert_eq!(workspace.outside().map(|(_, dependency)| dependency.name.as_str()).collect::<Vec<_>>(), ["x", "z", "p", "q"]);
        assert_eq!(workspace.outside_apart().map(|(_, dependency)| dependency.name.as_str()).collect::<Vec<_>>(), ["r", "t"]);
        assert!(Workspace::read(&Tree::of(&[("Cargo.toml", "[workspace]\nmembers = [\"a\"]")])).unwrap_err().contains("a/Cargo.toml"));
    }
}
