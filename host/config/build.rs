//! Leaves the commit of the source tree in the binary, as `COLI_COMMIT`; nothing where there is no git or no repository.
//!
//! It runs again when `HEAD`, the branch that it names, or the packed references change, and not otherwise.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A build script is started in its package's folder.
    let root = Path::new("../..");
    // Only this tree's own repository: a release unpacked inside of another one is not of that one's commit.
    if !root.join(".git").exists() {
        return;
    }
    let Some(commit) = git(root, &["rev-parse", "--short=12", "HEAD"]) else { return };
    println!("cargo:rustc-env=COLI_COMMIT={commit}");
    let branch = git(root, &["symbolic-ref", "--quiet", "HEAD"]);
    let names = ["HEAD".to_string(), "packed-refs".to_string()].into_iter().chain(branch);
    // In a linked work tree `.git` is a file, and only git knows where these lie.
    let paths = names.filter_map(|name| git(root, &["rev-parse", "--git-path", &name])).map(|path| root.join(path));
    // A file that does not exist would make cargo run this every time; when a packed branch gets a file of its own, its folder changes.
    for path in paths.filter_map(existing) {
        println!("cargo:rerun-if-changed={}", path.display());
    }
}

/// The path itself, or the folder that it would come to lie in.
fn existing(path: PathBuf) -> Option<PathBuf> {
    if path.exists() { Some(path) } else { path.parent().filter(|folder| folder.ends_with("heads")).map(Path::to_path_buf) }
}

fn git(root: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(root).args(args).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
}
