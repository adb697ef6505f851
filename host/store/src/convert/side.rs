//! The files beside the tensors: configuration, tokenizer, chat template, licence.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use coli_base::{Error, Result};

use super::disk;
use super::state::Identity;

/// Without it no folder is a model, so it is copied last.
pub(super) const CONFIG: &str = "config.json";
/// The list of tensors is written anew.
pub(super) const INDEX: &str = "model.safetensors.index.json";

/// What names of copied files end with: no model has weights in these.
const ENDINGS: [&str; 6] = ["json", "jinja", "txt", "model", "tiktoken", "md"];
/// How the names of the others begin that come along: whoever passes a model on has to pass these on.
const BEGINNINGS: [&str; 2] = ["LICENSE", "NOTICE"];

/// A file that is copied.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) name: String,
    pub(super) identity: Identity,
}

/// The files of a folder that are copied, `config.json` last, and the names of those that are not, but for files of tensors.
pub(super) fn list(dir: &Path, shards: &[PathBuf]) -> Result<(Vec<Side>, Vec<String>)> {
    let fail = |error: io::Error| Error::refused(format!("`{}`: {error}", dir.display()));
    let (mut sides, mut left_out) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(dir).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if shards.contains(&path) || name == INDEX {
            continue;
        }
        // Links are followed: caches of downloaded models are made of them. A name that is no text cannot be written down.
        let regular = fs::metadata(&path).is_ok_and(|facts| facts.is_file()) && path.file_name().is_some_and(|own| own.to_str().is_some());
        match regular && is_copied(&name) {
            true => sides.push(Side { identity: Identity::of(&path)?, name }),
            false => left_out.push(name),
        }
    }
    sides.sort_by(|a, b| (a.name == CONFIG, &a.name).cmp(&(b.name == CONFIG, &b.name)));
    left_out.sort();
    Ok((sides, left_out))
}

fn is_copied(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
    let known = ending.is_some_and(|ending| ENDINGS.contains(&ending.to_ascii_lowercase().as_str()));
    !name.starts_with('.') && (known || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)))
}

impl Side {
    /// Copies it, unless that was done before.
    pub(super) fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let (source, path) = (from.join(&self.name), to.join(&self.name));
        match fs::metadata(&path) {
            Ok(facts) if facts.is_file() && facts.len() == self.identity.bytes => return Ok(()),
            Ok(_) => return Err(Error::run(format!("`{}` is not the one of the source; nothing was overwritten", path.display()))),
            Err(_) => {}
        }
        let temporary = disk::partial(&path);
        let copied = disk::remove(&temporary).and_then(|()| {
            let mut file = File::create_new(&temporary)?;
            io::copy(&mut File::open(&source)?, &mut file)?;
            file.sync_all()
        });
        copied.map_err(|error| disk::failed(&path, &error))?;
        self.identity.check(&source)?;
        disk::publish(&temporary, &path)
    }
}
