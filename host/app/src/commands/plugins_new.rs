//! `coli plugins new`: writes the crate of a plugin that builds, loads and runs, for its author to change.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use coli_base::{Error, Result};
use coli_plugin_api::abi::ABI_VERSION;

use crate::cli::NewArgs;

/// Files by their place in the crate; `{{id}}` in a name stands for the plugin's id.
const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("../../templates/plugin/Cargo.toml.tmpl")),
    (".gitignore", include_str!("../../templates/plugin/gitignore.tmpl")),
    ("README.md", include_str!("../../templates/plugin/README.md.tmpl")),
    ("{{id}}.plugin.toml", include_str!("../../templates/plugin/manifest.tmpl")),
    ("src/lib.rs", include_str!("../../templates/plugin/lib.rs.tmpl")),
    ("src/config.rs", include_str!("../../templates/plugin/config.rs.tmpl")),
    ("src/weights.rs", include_str!("../../templates/plugin/weights.rs.tmpl")),
    ("src/forward.rs", include_str!("../../templates/plugin/forward.rs.tmpl")),
    ("tests/golden.rs", include_str!("../../templates/plugin/golden.rs.tmpl")),
    ("golden/README.md", include_str!("../../templates/plugin/golden.md.tmpl")),
];

/// Crates that a plugin depends on, and where they are in the source tree.
const CRATES: [(&str, &str); 2] = [("coli-plugin-api", "plugin-api"), ("coli-shaders", "shaders")];
const NAME_MAX: usize = 32;

pub(super) fn run(args: &NewArgs) -> anyhow::Result<()> {
    check_name(&args.name)?;
    let dependencies = dependencies(args.path.as_deref())?;
    let folder = args.dir.join(&args.name);
    make_folder(&args.dir, &folder)?;
    let words = [("id", args.name.clone()), ("type", type_name(&args.name)), ("abi", ABI_VERSION.into()), ("dependencies", dependencies)];
    for (name, text) in FILES {
        let path = folder.join(fill(name, &words));
        write(&path, &fill(text, &words)).map_err(|error| Error::run(format!("{}: {error}", path.display())))?;
    }
    say!("wrote {}; its README.md says how to go on", folder.display());
    Ok(())
}

fn check_name(name: &str) -> Result<()> {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let good = name.len() <= NAME_MAX && name.starts_with(|c: char| c.is_ascii_lowercase()) && name.bytes().all(allowed);
    if good {
        return Ok(());
    }
    let shown: String = name.chars().take(NAME_MAX).flat_map(char::escape_debug).collect();
    let text = format!("`{shown}` cannot name a plugin: expected at most {NAME_MAX} lowercase letters, digits and `_`, a letter first");
    Err(Error::usage(text))
}

/// `my_model` becomes `MyModelPlugin`, which no other type in the crate is called.
fn type_name(name: &str) -> String {
    let word = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    name.split('_').filter(|part| !part.is_empty()).map(word).chain(["Plugin".into()]).collect()
}

/// The crate's dependencies: by path into a source tree, or by the version of this program.
fn dependencies(root: Option<&Path>) -> Result<String> {
    let line = |(name, folder): &(&str, &str)| {
        let Some(root) = root else { return Ok(format!("{name} = \"{}\"", env!("CARGO_PKG_VERSION"))) };
        let path = root.join(folder);
        if !path.join("Cargo.toml").is_file() {
            return Err(Error::usage(format!("--path: {} is not coli's source tree: it has no {folder}/Cargo.toml", root.display())));
        }
        let path = path.canonicalize().map_err(|error| Error::run(format!("{}: {error}", path.display())))?;
        let path = path.to_str().ok_or_else(|| Error::usage(format!("--path: {} is not UTF-8, which a Cargo.toml is", root.display())))?;
        // A string of TOML and one of JSON are written alike.
        Ok(format!("{name} = {{ path = {} }}", serde_json::Value::from(path)))
    };
    Ok(CRATES.iter().map(line).collect::<Result<Vec<_>>>()?.join("\n"))
}

fn make_folder(parent: &Path, folder: &Path) -> Result<()> {
    fs::create_dir(folder).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Error::usage(format!("{} is there already: take another name, or another --dir", folder.display())),
        ErrorKind::NotFound => Error::usage(format!("--dir: {} is no folder", parent.display())),
        _ => Error::run(format!("{}: {error}", folder.display())),
    })
}

/// Writes a new file.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}

fn fill(text: &str, words: &[(&str, String)]) -> String {
    words.iter().fold(text.into(), |text, (key, value)| text.replace(&format!("{{{{{key}}}}}"), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_a_crate_and_a_type() {
        for (name, as_type) in [("mine", "MinePlugin"), ("my_model", "MyModelPlugin"), ("gpt2", "Gpt2Plugin"), ("a__b_", "ABPlugin")] {
            assert!(check_name(name).is_ok(), "{name}");
            assert_eq!(type_name(name), as_type);
        }
        for name in ["", "Mine", "my-model", "2mine", "_mine", "../mine", "a b", "é", "mine\n", &"a".repeat(33)] {
            let error = check_name(name).unwrap_err();
            assert!(!error.text.contains('\n') && error.text.contains("cannot name a plugin"), "{name:?}: {error}");
        }
    }

    #[test]
    fn every_place_is_filled() {
        let words = ["id", "type", "abi", "dependencies"].map(|key| (key, "x".to_string()));
        for (name, text) in FILES {
            let whole = fill(name, &words) + &fill(text, &words);
            assert!(!whole.contains("{{"), "{name}");
        }
    }
}
