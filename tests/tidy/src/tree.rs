//! The repository's files: those that git tracks or would track, or where there is no git, those in the folder.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::items;
use crate::source::Source;

/// A file.
#[derive(Debug, Default)]
pub struct File {
    /// Where it is, from the root, with `/`.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Its text; none of a binary file.
    pub text: Option<String>,
    /// Whether only tests compile it.
    pub test: bool,
}

impl File {
    /// A file with this content.
    pub fn new(path: &str, content: Vec<u8>) -> Self {
        let bytes = content.len() as u64;
        let text = String::from_utf8(content).ok().filter(|text| !text.contains('\0'));
        Self { path: path.into(), bytes, text, test: path.starts_with("tests/") || path.contains("/tests/") }
    }

    /// Its name without folders.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// What stands behind the last dot of its name.
    pub fn extension(&self) -> &str {
        self.name().rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    /// Its text, where it has one; else nothing.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Its tokens, if it is Rust.
    pub fn rust(&self) -> Option<Source<'_>> {
        (self.extension() == "rs").then(|| Source::new(self.text()))
    }

    /// Whether it is data as other programs wrote it: a model's weights, tokenizer and references, or seeds of a fuzz target.
    pub fn is_data(&self) -> bool {
        let model = self.path.starts_with("models/") && (self.path.contains("/demo/") || self.path.contains("/golden/"));
        let seed = self.path.starts_with("tests/") && self.path.contains("/seeds/");
        seed || model && !["md", "toml"].contains(&self.extension())
    }
}

/// All files.
#[derive(Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, File>,
}

impl Tree {
    /// The tree at this root.
    pub fn read(root: &Path) -> std::io::Result<Self> {
        let mut paths = Vec::new();
        match listed(root) {
            Some(listed) => paths = listed,
            None => walk(root, "", &mut paths)?,
        }
        let mut files = Vec::new();
        // A file that git still lists may be gone already.
        for path in paths.iter().filter(|path| root.join(path).is_file()) {
            files.push(File::new(path, std::fs::read(root.join(path))?));
        }
        Ok(Self::with(files))
    }

    /// A tree in memory.
    pub fn of(files: &[(&str, &str)]) -> Self {
        Self::with(files.iter().map(|(path, text)| File::new(path, text.as_bytes().to_vec())).collect())
    }

    fn with(files: Vec<File>) -> Self {
        let mut tree = Self { files: files.into_iter().map(|file| (file.path.clone(), file)).collect() };
        let tests: Vec<String> = tree.rust().flat_map(|(file, source)| tree.test_files(file, &source)).collect();
        for path in tests {
            tree.files.entry(path).and_modify(|file| file.test = true);
        }
        tree
    }

    /// All files, in the order of their paths.
    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.files.values()
    }

    /// The Rust files, with their tokens.
    pub fn rust(&self) -> impl Iterator<Item = (&File, Source<'_>)> {
        self.files().filter_map(|file| Some((file, file.rust()?)))
    }

    /// A file.
    pub fn get(&self, path: &str) -> Option<&File> {
        self.files.get(path)
    }

    /// A file's text, or nothing.
    pub fn text(&self, path: &str) -> &str {
        self.get(path).map_or("", File::text)
    }

    /// The names of the folders in a folder that have files somewhere in them.
    pub fn folders(&self, parent: &str) -> Vec<&str> {
        let inside = |path: &'_ String| path.strip_prefix(parent).and_then(|rest| rest.strip_prefix('/')).is_some();
        let behind = |path: &'_ String| path[parent.len() + 1..].find('/');
        let mut names: Vec<&str> = Vec::new();
        for path in self.files.keys().filter(|path| inside(path)) {
            let Some(end) = behind(path) else { continue };
            let name = &path[parent.len() + 1..][..end];
            if names.last() != Some(&name) {
                names.push(name);
            }
        }
        names.dedup();
        names
    }

    /// The files of the modules that only tests compile, as this file declares them.
    fn test_files(&self, file: &File, source: &Source<'_>) -> Vec<String> {
        let dir = file.path.strip_suffix(file.name()).unwrap_or_default();
        let own = match file.name() {
            "mod.rs" | "lib.rs" | "main.rs" => dir.to_string(),
            name => format!("{dir}{}/", name.trim_end_matches(".rs")),
        };
        let mut found = Vec::new();
        for module in items::test_modules(source) {
            match module.path {
                Some(path) => found.push(format!("{dir}{path}")),
                None => {
                    let (single, folder) = (format!("{own}{}.rs", module.name), format!("{own}{}/", module.name));
                    found.extend(self.files.keys().filter(|path| **path == single || path.starts_with(&folder)).cloned());
                }
            }
        }
        found
    }
}

/// What git tracks, and what it would track: a rule that holds only until `git add` would be a trap. `None` where the tree is not a
/// repository of its own, or git is not there.
fn listed(root: &Path) -> Option<Vec<String>> {
    if !root.join(".git").exists() {
        return None;
    }
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").current_dir(root).args(arguments).output().ok().filter(|output| output.status.success())?;
    let names = output.stdout.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    Some(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// Everything but build outputs and temporary files.
fn walk(root: &Path, folder: &str, paths: &mut Vec<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if entry.file_type()?.is_dir() {
            if name != "target" && name != ".git" {
                walk(root, &path, paths)?;
            }
        } else if !name.ends_with(".tmp") {
            paths.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_under_cfg_test_are_test_code() {
        let tree = Tree::of(&[
            ("host/a/src/lib.rs", "#[cfg(test)]\nmod testing;\nmod b;"),
            ("host/a/src/testing.rs", ""),
            ("host/a/src/b.rs", "#[cfg(test)]\nmod deep;\n#[cfg(test)]\n#[path = \"b_tests.rs\"]\nmod tests;"),
            ("host/a/src/b/deep/mod.rs", "mod more;"),
            ("host/a/src/b/deep/more.rs", ""),
            ("host/a/src/b_tests.rs", ""),
            ("tests/x/src/lib.rs", ""),
        ]);
        let tests: Vec<&str> = tree.files().filter(|file| file.test).map(|file| file.path.as_str()).collect();
        let expected = ["b/deep/mod.rs", "b/deep/more.rs", "b_tests.rs", "testing.rs"].map(|path| format!("host/a/src/{path}"));
        assert_eq!(tests[..4], expected);
        assert_eq!(tests[4..], ["tests/x/src/lib.rs"]);
    }

    #[test]
    fn folders_are_those_right_below() {
        let tree = Tree::of(&[("a/b/c/d.rs", ""), ("a/b/e.rs", ""), ("a/f.rs", ""), ("a/g/h.rs", ""), ("ab/i/j.rs", "")]);
        assert_eq!(tree.folders("a"), ["b", "g"]);
    }

    #[test]
    fn git_and_a_walk_find_this_file() {
        let root = coli_test_common::built::root();
        let mut walked = Vec::new();
        walk(&root.join("tests/tidy"), "", &mut walked).unwrap();
        assert!(walked.contains(&"src/tree.rs".to_string()));
        assert!(Tree::read(&root).unwrap().text("tests/tidy/src/tree.rs").contains("git_and_a_walk_find_this_file"));
    }
}
