//! The licences of everything in a release: of coli, of the demo model, of Rust's standard library, and of each crate that is linked into
//! the program or a plugin. A crate without a licence file stops the release, unless `tests/dist/licences/<crate>-<version>/` has one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

const OVERRIDES: &str = "tests/dist/licences";
/// What Rust's toolchain says of its standard library and the crates in it, with the text of every licence.
const RUST: &str = "share/doc/rust/COPYRIGHT-library.html";

/// A crate from outside that is linked in.
struct Crate {
    /// `<name>-<version>`.
    id: String,
    /// As its manifest has it.
    licence: String,
    /// Where its sources are.
    folder: PathBuf,
}

/// The crates from outside that are linked in, by name and version.
pub(crate) struct Linked(Vec<Crate>);

impl Linked {
    /// The folders that the crates' folders lie in, each with the slash behind it.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let parents: BTreeSet<&Path> = self.0.iter().filter_map(|krate| krate.folder.parent()).collect();
        parents.into_iter().map(|parent| parent.join("")).collect()
    }
}

/// The crates that the program and these plugins link. A macro's crate works in the compiler and a build script's before it: neither is
/// in what they help to make.
pub(crate) fn linked(root: &Path, target: &str, plugins: &[String]) -> Result<Linked> {
    let arguments = ["metadata", "--format-version", "1", "--locked", "--filter-platform", target];
    let graph: Value = serde_json::from_str(&super::output(Command::new("cargo").args(arguments).current_dir(root))?)?;
    let packages: BTreeMap<&str, &Value> = list(&graph["packages"]).map(|package| (text(&package["id"]), package)).collect();
    let nodes: BTreeMap<&str, &Value> = list(&graph["resolve"]["nodes"]).map(|node| (text(&node["id"]), node)).collect();
    let is_product = |package: &Value| text(&package["name"]) == "coli-app" || plugins.iter().any(|name| package["name"] == **name);
    let mut ahead: Vec<&str> = packages.iter().filter(|(_, package)| is_product(package)).map(|(id, _)| *id).collect();
    ensure!(ahead.len() == plugins.len() + 1, "cargo does not know all of coli-app, {}", plugins.join(", "));
    let (mut seen, mut crates) = (BTreeSet::new(), Vec::new());
    while let Some(id) = ahead.pop() {
        let package = packages.get(id).with_context(|| format!("cargo names {id} and does not describe it"))?;
        if is_macro(package) || !seen.insert(id) {
            continue;
        }
        let used = list(&nodes.get(id).context("a package without a node")?["deps"]);
        ahead.extend(used.filter(|used| list(&used["dep_kinds"]).any(|kind| kind["kind"].is_null())).map(|used| text(&used["pkg"])));
        if !package["source"].is_null() {
            crates.push(describe(package)?);
        }
    }
    crates.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(Linked(crates))
}

fn is_macro(package: &Value) -> bool {
    list(&package["targets"]).any(|target| list(&target["kind"]).any(|kind| kind == "proc-macro"))
}

fn describe(package: &Value) -> Result<Crate> {
    let id = format!("{}-{}", text(&package["name"]), text(&package["version"]));
    let folder = Path::new(text(&package["manifest_path"])).parent().with_context(|| format!("{id} has no folder"))?;
    Ok(Crate { id, licence: text(&package["license"]).replace('|', "\\|"), folder: folder.into() })
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Writes a folder for each part of the release, and a page that lists them.
pub(crate) fn write(root: &Path, linked: &Linked, to: &Path) -> Result<()> {
    let sysroot = super::output(Command::new("rustc").args(["--print", "sysroot"]).current_dir(root))?;
    let rust = Path::new(sysroot.trim()).join(RUST);
    ensure!(rust.is_file(), "{} is missing, the licences of Rust's standard library; install Rust with rustup", rust.display());
    put(&[rust], &to.join("rust-std"))?;
    put(&[root.join("LICENSE")], &to.join("coli"))?;
    put(&[root.join(super::DEMO).join("README.md"), root.join("LICENSE")], &to.join("demo"))?;
    let mut page = String::from(INTRODUCTION);
    for krate in &linked.0 {
        put(&files_of(root, krate)?, &to.join(&krate.id))?;
        page.push_str(&format!("| `{}` | {} |\n", krate.id, krate.licence));
    }
    fs::write(to.join("README.md"), page)?;
    Ok(())
}

const INTRODUCTION: &str = "# Licences of what is in this archive

Each folder here has the texts for one part.

| part | licence |
|---|---|
| `coli`: the program and the plugins in `models/` | Apache-2.0 |
| `demo`: the demo model; its page says what it was trained on | Apache-2.0 |
| `rust-std`: Rust's standard library, which is linked into program and plugins | MIT OR Apache-2.0, and as its page says |

Crates that are linked into the program or a plugin:

| crate | licence |
|---|---|
";

/// The licence files of a crate: ours where we have some, else those in its sources.
fn files_of(root: &Path, krate: &Crate) -> Result<Vec<PathBuf>> {
    let ours = root.join(OVERRIDES).join(&krate.id);
    let folder = if ours.is_dir() { &ours } else { &krate.folder };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        if entry.file_type()?.is_file() && is_licence(&entry.file_name().to_string_lossy()) {
            files.push(entry.path());
        }
    }
    let advice = format!("put the text of `{}` with its copyright line into {OVERRIDES}/{}/LICENSE", krate.licence, krate.id);
    ensure!(!files.is_empty(), "the crate {} has no licence file; {advice}", krate.id);
    Ok(files)
}

fn is_licence(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let ends = [".rs", ".py", ".sh"].iter().any(|end| name.ends_with(end));
    !ends && ["license", "licence", "copying", "copyright", "notice"].iter().any(|word| name.contains(word))
}

fn put(files: &[PathBuf], to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    files.iter().try_for_each(|file| super::copy(file, &to.join(file.file_name().unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licence_files_are_known_by_their_names() {
        for name in ["LICENSE", "LICENSE-MIT.txt", "licence.md", "UNLICENSE", "MIT_license", "COPYING", "NOTICE", "COPYRIGHT"] {
            assert!(is_licence(name), "{name}");
        }
        assert!(["README.md", "src", "Cargo.toml", "license.rs"].into_iter().all(|name| !is_licence(name)));
    }

    #[test]
    fn a_crate_without_a_licence_file_is_an_error_that_says_where_to_put_one() {
        let (root, sources) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let krate = Crate { id: "x-1.0.0".into(), licence: "MIT".into(), folder: sources.path().into() };
        let error = files_of(root.path(), &krate).unwrap_err().to_string();
        assert!(error.contains("x-1.0.0 has no licence file") && error.contains("tests/dist/licences/x-1.0.0/LICENSE"), "{error}");
        let ours = root.path().join(OVERRIDES).join("x-1.0.0");
        fs::create_dir_all(&ours).unwrap();
        fs::write(ours.join("LICENSE"), "text").unwrap();
        assert_eq!(files_of(root.path(), &krate).unwrap(), [ours.join("LICENSE")]);
    }
}
