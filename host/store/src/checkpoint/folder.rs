//! A folder's safetensors files while they are opened: all headers first, then what tensors they make.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Component, Path};

use coli_base::{Error, Result};
use coli_plugin_api::describe::Container;
use serde_json::Value;

use super::{Checkpoint, NEEDED};
use crate::file::OpenFile;
use crate::header;
use crate::packed::{self, Stated, Stored};
use crate::quantization::Quantization;

/// What a converter leaves beside the tensors whose pairs of four-bit numbers are in two's complement: the end of its name, and a key.
const TWOS_NOTE: (&str, &str) = ("_meta.json", "ebits");
const NOTE_BYTES_MAX: u64 = 1 << 20;

pub(super) struct Folder<'a> {
    dir: &'a Path,
    files: Vec<OpenFile>,
    stored: Vec<Stored>,
    by_name: HashMap<String, usize>,
    stated: Stated,
}

impl<'a> Folder<'a> {
    pub(super) fn new(dir: &'a Path) -> Self {
        Self { dir, files: Vec::new(), stored: Vec::new(), by_name: HashMap::new(), stated: Stated::default() }
    }

    /// The checkpoint, and what is wrong with its packed tensors; these are not read.
    pub(super) fn finish(self, config: Value, quantization: Quantization) -> (Checkpoint, Vec<Error>) {
        let twos = has_twos_note(self.dir);
        let (tensors, faults) = packed::tensors(&self.stored, &self.stated, quantization, twos);
        let mut checkpoint = Checkpoint::new(self.dir, self.dir, Container::Hf, config);
        checkpoint.files = self.files;
        tensors.into_iter().for_each(|tensor| checkpoint.add(tensor));
        (checkpoint, faults)
    }

    pub(super) fn add_file(&mut self, name: &str) -> Result<()> {
        let (file, entries, notes) = header::open_with_notes(&self.dir.join(name))?;
        self.stated.add(&notes).map_err(|error| error.within(format_args!("`{}`", file.path.display())))?;
        for entry in entries {
            let index = self.stored.len();
            if let Some(other) = self.by_name.insert(entry.name.clone(), index) {
                let other = &self.files[self.stored[other].file].path;
                let (first, second) = (other.display(), file.path.display());
                return Err(Error::refused(format!("tensor `{}` is in both `{first}` and `{second}`", entry.name)));
            }
            self.stored.push(Stored { file: self.files.len(), entry });
        }
        self.files.push(file);
        Ok(())
    }

    /// Every safetensors file of the folder.
    pub(super) fn add_all(&mut self) -> Result<()> {
        let names = self.names()?;
        if names.is_empty() {
            return Err(Error::refused(format!("`{}` has no *.safetensors; {NEEDED}", self.dir.display())));
        }
        names.iter().try_for_each(|name| self.add_file(name))
    }

    /// The names of all safetensors files of the folder.
    pub(super) fn names(&self) -> Result<BTreeSet<String>> {
        let fail = |error: io::Error| Error::refused(format!("`{}`: {error}", self.dir.display()));
        let mut names = BTreeSet::new();
        for entry in std::fs::read_dir(self.dir).map_err(fail)? {
            let name = entry.map_err(fail)?.file_name();
            if let Some(name) = name.to_str().filter(|name| name.ends_with(".safetensors")) {
                names.insert(name.to_owned());
            }
        }
        Ok(names)
    }

    /// The files that the index names; each of its entries must be true.
    pub(super) fn add_indexed(&mut self, index: &Value) -> Result<()> {
        let claims = claims(index)?;
        let mut shards: Vec<&str> = claims.values().copied().collect();
        shards.sort_unstable();
        shards.dedup();
        for shard in shards {
            if !self.dir.join(shard).exists() {
                return Err(Error::refused(format!("shard `{}` is missing", self.dir.join(shard).display())));
            }
            self.add_file(shard)?;
        }
        for (name, shard) in claims {
            let Some(stored) = self.by_name.get(name).map(|at| &self.stored[*at]) else {
                return Err(Error::refused(format!("tensor `{name}` should be in `{shard}` and is in no shard")));
            };
            let actual = &self.files[stored.file].path;
            if *actual != self.dir.join(shard) {
                return Err(Error::refused(format!("tensor `{name}` should be in `{shard}` and is in `{}`", actual.display())));
            }
        }
        Ok(())
    }
}

/// The index's map from tensors to files of this folder, checked for form.
pub(super) fn claims(index: &Value) -> Result<BTreeMap<&str, &str>> {
    let map = index.get("weight_map").and_then(Value::as_object).ok_or_else(|| Error::refused("no weight_map"))?;
    if map.is_empty() {
        return Err(Error::refused("weight_map is empty"));
    }
    let mut claims = BTreeMap::new();
    for (name, shard) in map {
        // A path out of the folder would read whatever the index's author likes.
        let inside = |shard: &&str| !shard.is_empty() && Path::new(shard).components().all(|part| matches!(part, Component::Normal(_)));
        let shard = shard.as_str().filter(inside);
        let shard = shard.ok_or_else(|| Error::refused(format!("weight_map of tensor `{name}` names no file of this folder")))?;
        claims.insert(name.as_str(), shard);
    }
    Ok(claims)
}

/// Whether the folder has that converter's note. Another file of such a name, or one that cannot be read, is none.
pub(crate) fn has_twos_note(dir: &Path) -> bool {
    let (end, key) = TWOS_NOTE;
    let is_note = |path: &Path| {
        let bytes = coli_base::files::read_bounded(path, NOTE_BYTES_MAX).ok().flatten();
        bytes.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok()).is_some_and(|note| note.get(key).is_some())
    };
    let named = |path: &Path| path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.ends_with(end));
    let paths = std::fs::read_dir(dir).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| named(path)).any(|path| is_note(&path))
}
