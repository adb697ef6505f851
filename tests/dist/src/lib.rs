//! The release archive of this platform: [`write`] makes it from what is built.
//!
//! ```text
//! coli-<version>-<target>/   coli  models/<name>/  shaders/  demo/  licences/  README.md  CHANGELOG.md  LICENSE  SHA256SUMS
//! ```
//!
//! Nothing is compiled for it. The program is `coli-release` (host/app/src/release.rs), which every build makes beside `coli`.

mod binary;
mod licences;
mod pack;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use coli_app::sums;
use coli_test_common::built;

/// Name and version of the release.
const VERSION: &str = env!("CARGO_PKG_VERSION");
const DEMO: &str = "models/olmoe/demo";

/// Texts at the root of the source tree that go along.
const PAGES: &[&str] = &["README.md", "CHANGELOG.md", "LICENSE"];

/// Writes the archive into a folder, which is made, and gives its path. Beside it goes its checksum, `<archive>.sha256`.
pub fn write(out: &Path) -> Result<PathBuf> {
    let target = target()?;
    let top = format!("coli-{VERSION}-{target}");
    // On the file system of the build, where there is room.
    let stage = tempfile::Builder::new().prefix("coli-dist-").tempdir_in(built::home())?;
    let folder = stage.path().join(&top);
    fill(&folder, &target)?;
    let list = sums::list(&folder)?;
    fs::write(folder.join(sums::NAME), list)?;
    pack::archive(stage.path(), &top, out)
}

fn fill(folder: &Path, target: &str) -> Result<()> {
    let root = built::root();
    let linked = licences::linked(&root, target, &plugin_packages(&root)?)?;
    let paths = linked.folders();
    fs::create_dir_all(folder)?;
    binary::install(&product("coli-release", std::env::consts::EXE_SUFFIX)?, &folder.join("coli"), &paths)?;
    for name in plugins(&root)? {
        let (from, to) = (root.join("models").join(&name), folder.join("models").join(&name));
        fs::create_dir_all(&to)?;
        let manifest = format!("{name}.plugin.toml");
        copy(&from.join(&manifest), &to.join(&manifest))?;
        let library = library(&from.join(&manifest))?;
        binary::install(&product(&library, "")?, &to.join(&library), &paths)?;
    }
    write_kernels(&folder.join(coli_kernels::FOLDER))?;
    copy_folder(&root.join(DEMO), &folder.join("demo"))?;
    PAGES.iter().try_for_each(|page| copy(&root.join(page), &folder.join(page)))?;
    licences::write(&root, &linked, &folder.join("licences"))
}

/// The set of Vulkan's kernels that is built into the program, as a file: it can be looked at, and another one put in its place.
fn write_kernels(folder: &Path) -> Result<()> {
    ensure!(coli_kernels::Kernels::are_built(), "this was built without Vulkan's kernels, which a release has: run ./coli.sh dist");
    fs::create_dir_all(folder)?;
    fs::write(folder.join(coli_kernels::FILE), coli_kernels::Kernels::archive())?;
    Ok(())
}

/// Names of the plugins: the folders in `models/` that have a manifest.
fn plugins(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join("models"))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().join(format!("{name}.plugin.toml")).is_file() {
            names.push(name);
        }
    }
    names.sort();
    ensure!(!names.is_empty(), "models/ has no plugin");
    Ok(names)
}

fn plugin_packages(root: &Path) -> Result<Vec<String>> {
    Ok(plugins(root)?.into_iter().map(|name| format!("coli-{name}")).collect())
}

/// The file name of the library that a manifest names.
fn library(manifest: &Path) -> Result<String> {
    let table: toml::Table = fs::read_to_string(manifest)?.parse().with_context(|| manifest.display().to_string())?;
    let Some(name) = table.get("library").and_then(toml::Value::as_str) else { bail!("{} has no `library`", manifest.display()) };
    Ok(format!("{}{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX))
}

/// A file that the build made.
fn product(name: &str, suffix: &str) -> Result<PathBuf> {
    let path = built::home().join(format!("{name}{suffix}"));
    ensure!(path.is_file(), "{} is not built: run ./coli.sh build first", path.display());
    Ok(path)
}

/// The platform, as the compiler names it.
fn target() -> Result<String> {
    let text = output(Command::new("rustc").arg("-vV").current_dir(built::root()))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_string).context("`rustc -vV` does not say its host")
}

/// What a program prints; an error where it fails.
fn output(command: &mut Command) -> Result<String> {
    let what = format!("{command:?}");
    let output = command.output().with_context(|| format!("{what} does not start"))?;
    ensure!(output.status.success(), "{what} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8(output.stdout)?)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| from.display().to_string())?;
    Ok(())
}

/// Copies the files of a folder that has no folders in it.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        ensure!(entry.file_type()?.is_file(), "{} is no file; only files go into a release", entry.path().display());
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
