//! The plugin that is built outside of the workspace.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use coli_test_cli::fresh;
use coli_test_common::built;
use tempfile::TempDir;

/// Builds with a PATH that has the tools for Rust and for linking, and nothing else.
const BUILD: &str = r#"
set -e
for tool in cargo rustc cc gcc ld as ar; do
    if found=$(command -v "$tool"); then ln -s "$found" "$1/$tool"; fi
done
PATH=$1
export PATH
if command -v cmake || command -v python3; then exit 9; fi
exec cargo build --quiet --release --locked --manifest-path "$2" --target-dir "$3" --features "$4"
"#;

/// The plugin's source.
fn source() -> PathBuf {
    built::root().join("tests/plugins/outside")
}

/// Its golden model.
pub fn golden() -> PathBuf {
    source().join("golden")
}

/// The name of its library.
fn file() -> String {
    format!("{DLL_PREFIX}coli_outside{DLL_SUFFIX}")
}

/// Builds the plugin with a feature, or with none, into the folder where the other libraries of these tests are built.
fn build(feature: &str) -> PathBuf {
    // All features make the same file: it is copied before the next one is built.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (tools, target) = (fresh(), built::home().parent().unwrap().join("plugins"));
    let mut command = Command::new("sh");
    command.args(["-c", BUILD, "sh"]).arg(tools.path()).arg(source().join("Cargo.toml")).arg(&target).arg(feature);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{:?}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    let copy = target.join(format!("outside_{feature}{DLL_SUFFIX}"));
    fs::copy(target.join("release").join(file()), &copy).unwrap();
    copy
}

/// A folder with the plugin, whose manifest has one text replaced.
pub fn folder(feature: &str, old: &str, new: &str) -> TempDir {
    let folder = fresh();
    let plugin = folder.path().join("outside");
    fs::create_dir(&plugin).unwrap();
    fs::copy(build(feature), plugin.join(file())).unwrap();
    let manifest = fs::read_to_string(source().join("outside.plugin.toml")).unwrap();
    assert!(manifest.contains(old), "{old}");
    fs::write(plugin.join("outside.plugin.toml"), manifest.replace(old, new)).unwrap();
    folder
}
