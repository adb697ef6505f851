//! A stored model: a folder with `config.json` and the tensors of all its safetensors files, or a GGUF file with all of that in it.

mod survey;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Component, Path, PathBuf};

use coli_base::{Error, Result, files};
use coli_plugin_api::describe::{Container, TensorFact};
use coli_shaders::formats::Format;
use safetensors::Dtype;
use serde_json::Value;

pub use survey::{Survey, survey};

use crate::file::OpenFile;
use crate::{gguf, header};

const NEEDED: &str = "a model is a folder with config.json, tokenizer.json and *.safetensors, or a GGUF file";
/// Files beside the tensors that make a folder a model.
const OWN_FILES: [&str; 5] = ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", INDEX];
const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
/// Where a GGUF file says what `model_type` says in a `config.json`.
const ARCHITECTURE: &str = "general.architecture";

/// The index is read whole; that of a model of half a million tensors has 50 MB.
const INDEX_BYTES_MAX: u64 = 256 << 20;
/// Configuration files are read whole, and their values take many times their bytes; the largest published one has some 100 KB.
const CONFIG_BYTES_MAX: u64 = 8 << 20;
/// Published configurations have less than ten levels. A parser's bound is about 128, and a plugin gets this within another object: one
/// that is refused there would look like a fault of the plugin.
const DEPTH_MAX: usize = 64;

/// A stored tensor.
#[derive(Debug)]
pub struct Tensor {
    /// Its name in the file.
    pub name: String,
    /// Its stored type, for example `bf16`.
    pub kind: String,
    /// Dimensions, outermost first.
    pub shape: Vec<u64>,
    /// Bytes it takes.
    pub bytes: u64,
    /// `None` for a type that we do not serve.
    pub(crate) format: Option<Format>,
    /// Position in the checkpoint's files.
    pub(crate) file: usize,
    /// From the start of that file; the tensor ends within it.
    pub(crate) offset: u64,
}

impl Tensor {
    /// Whether weights of its type can be used.
    pub fn is_served(&self) -> bool {
        self.format.is_some()
    }
}

/// A model whose headers have been checked. Its files stay open, so that what is read later is what was checked.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    dir: PathBuf,
    container: Container,
    config: Value,
    /// Of a GGUF file.
    metadata: gguf::Metadata,
    files: Vec<OpenFile>,
    tensors: Vec<Tensor>,
    by_name: HashMap<String, usize>,
}

/// Opens the model in a folder, or in a GGUF file, and checks everything that can be checked without reading weights.
pub fn open(path: &Path) -> Result<Checkpoint> {
    if is_gguf(path) {
        return of_gguf(path, gguf::open(path)?);
    }
    check_folder(path)?;
    open_folder(path)
}

/// Whether a path is a file that should be read as GGUF.
fn is_gguf(path: &Path) -> bool {
    path.is_file() && (ends_like_gguf(path) || gguf::is_gguf(path))
}

fn ends_like_gguf(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case("gguf"))
}

fn open_folder(dir: &Path) -> Result<Checkpoint> {
    let missing = || Error::refused(format!("`{}` is missing; {NEEDED}{}", dir.join("config.json").display(), gguf_within(dir)));
    let config = optional_object(&dir.join("config.json"))?.ok_or_else(missing)?;
    if depth(&config) > DEPTH_MAX {
        let path = dir.join("config.json");
        return Err(Error::refused(format!("`{}`: its values are nested more than {DEPTH_MAX} deep", path.display())));
    }
    let mut checkpoint = Checkpoint::new(dir, dir, Container::Hf, config);
    if dir.join(SINGLE).exists() {
        checkpoint.add_file(SINGLE)?;
    } else if let Some(index) = read_json(&dir.join(INDEX), INDEX_BYTES_MAX)? {
        checkpoint.add_indexed(&index).map_err(|error| error.within(format_args!("`{}`", dir.join(INDEX).display())))?;
    } else {
        checkpoint.add_all()?;
    }
    Ok(checkpoint)
}

fn of_gguf(path: &Path, model: gguf::Model) -> Result<Checkpoint> {
    let gguf::Model { metadata, files, tensors } = model;
    let config = metadata.config().map_err(|error| error.within(format_args!("`{}`", path.display())))?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut checkpoint = Checkpoint::new(path, dir, Container::Gguf, config);
    (checkpoint.metadata, checkpoint.files) = (metadata, files);
    for (file, gguf::Entry { name, kind, shape, offset, bytes }) in tensors {
        checkpoint.by_name.insert(name.clone(), checkpoint.tensors.len());
        let format = Format::of_ggml(kind);
        checkpoint.tensors.push(Tensor { kind: gguf::type_name(kind).into_owned(), name, shape, bytes, format, file, offset });
    }
    Ok(checkpoint)
}

impl Checkpoint {
    fn new(path: &Path, dir: &Path, container: Container, config: Value) -> Self {
        let (files, tensors, by_name) = (Vec::new(), Vec::new(), HashMap::new());
        Self { path: path.into(), dir: dir.into(), container, config, metadata: gguf::Metadata::default(), files, tensors, by_name }
    }

    /// What was opened: the folder, or the GGUF file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder, or that of the GGUF file.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where configuration and names of tensors come from.
    pub fn container(&self) -> Container {
        self.container
    }

    /// `config.json`, or a GGUF file's metadata without the tokenizer's long lists, by key: an object.
    pub fn config(&self) -> &Value {
        &self.config
    }

    /// A value of a GGUF file's metadata; a folder has none.
    pub fn metadata(&self, key: &str) -> Option<&gguf::Value> {
        self.metadata.get(key)
    }

    /// The architecture's name, by which a plugin is found: the `model_type`, or a GGUF file's `general.architecture`.
    pub fn model_type(&self) -> Result<&str> {
        let (key, path) = match self.container {
            Container::Hf => ("model_type", self.dir.join("config.json")),
            Container::Gguf => (ARCHITECTURE, self.path.clone()),
        };
        match self.config.get(key) {
            Some(Value::String(name)) => Ok(name),
            Some(other) => Err(Error::refused(format!("`{}`: {key} is {other}, not a name", path.display()))),
            None => Err(Error::refused(format!("`{}` has no {key}", path.display()))),
        }
    }

    /// Every stored tensor, file by file, by name within a file.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The tensors as `describe` takes them.
    pub fn facts(&self) -> Vec<TensorFact> {
        self.tensors.iter().map(|t| TensorFact { name: t.name.clone(), shape: t.shape.clone(), kind: t.kind.clone() }).collect()
    }

    /// Whether a path is one of the files that the model was opened from.
    pub fn is_part(&self, path: &Path) -> bool {
        let same = |own: &Path| own.canonicalize().is_ok_and(|own| path.canonicalize().is_ok_and(|path| own == path));
        let in_folder = || self.container == Container::Hf && OWN_FILES.iter().any(|name| same(&self.dir.join(name)));
        self.files.iter().any(|file| same(&file.path)) || in_folder()
    }

    /// A JSON object in a file of the folder, `None` where there is no such file. What lies beside a GGUF file need not belong to it.
    pub fn optional_object(&self, name: &str) -> Result<Option<Value>> {
        match self.container {
            Container::Hf => optional_object(&self.dir.join(name)),
            Container::Gguf => Ok(None),
        }
    }

    /// Position of a tensor in [`Self::tensors`].
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn file_of(&self, tensor: &Tensor) -> &OpenFile {
        &self.files[tensor.file]
    }

    fn add_file(&mut self, name: &str) -> Result<()> {
        let (file, entries) = header::open(&self.dir.join(name))?;
        for entry in entries {
            let index = self.tensors.len();
            if let Some(other) = self.by_name.insert(entry.name.clone(), index) {
                let other = &self.files[self.tensors[other].file].path;
                let (first, second) = (other.display(), file.path.display());
                return Err(Error::refused(format!("tensor `{}` is in both `{first}` and `{second}`", entry.name)));
            }
            self.tensors.push(Tensor {
                kind: entry.dtype.to_string().to_lowercase(),
                format: format_of(entry.dtype),
                name: entry.name,
                shape: entry.shape,
                bytes: entry.bytes,
                file: self.files.len(),
                offset: entry.offset,
            });
        }
        self.files.push(file);
        Ok(())
    }

    /// Every safetensors file of the folder.
    fn add_all(&mut self) -> Result<()> {
        let names = self.names()?;
        if names.is_empty() {
            return Err(Error::refused(format!("`{}` has no *.safetensors; {NEEDED}", self.dir.display())));
        }
        names.iter().try_for_each(|name| self.add_file(name))
    }

    /// The names of all safetensors files of the folder.
    fn names(&self) -> Result<BTreeSet<String>> {
        let fail = |error: io::Error| Error::refused(format!("`{}`: {error}", self.dir.display()));
        let mut names = BTreeSet::new();
        for entry in std::fs::read_dir(&self.dir).map_err(fail)? {
            let name = entry.map_err(fail)?.file_name();
            if let Some(name) = name.to_str().filter(|name| name.ends_with(".safetensors")) {
                names.insert(name.to_owned());
            }
        }
        Ok(names)
    }

    /// The files that the index names; each of its entries must be true.
    fn add_indexed(&mut self, index: &Value) -> Result<()> {
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
            let Some(tensor) = self.find(name).map(|at| &self.tensors[at]) else {
                return Err(Error::refused(format!("tensor `{name}` should be in `{shard}` and is in no shard")));
            };
            let actual = &self.file_of(tensor).path;
            if *actual != self.dir.join(shard) {
                return Err(Error::refused(format!("tensor `{name}` should be in `{shard}` and is in `{}`", actual.display())));
            }
        }
        Ok(())
    }
}

/// The index's map from tensors to files of this folder, checked for form.
fn claims(index: &Value) -> Result<BTreeMap<&str, &str>> {
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

fn check_folder(dir: &Path) -> Result<()> {
    let shown = dir.display();
    if dir.is_dir() {
        return Ok(());
    }
    Err(Error::refused(match std::fs::metadata(dir) {
        Ok(_) => format!("`{shown}` is not a folder; {NEEDED}"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => format!("`{shown}` does not exist; {NEEDED}"),
        Err(error) => format!("`{shown}`: {error}"),
    }))
}

/// Names the first GGUF file of a folder that is no model itself: it is most likely what was meant.
fn gguf_within(dir: &Path) -> String {
    let names = std::fs::read_dir(dir).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let first = names.filter(|path| ends_like_gguf(path)).min();
    first.map_or(String::new(), |path| format!("; `{}` is one", path.display()))
}

/// The JSON object in a configuration file, `None` where there is no such file.
pub fn optional_object(path: &Path) -> Result<Option<Value>> {
    match read_json(path, CONFIG_BYTES_MAX)? {
        Some(other) if !other.is_object() => Err(Error::refused(format!("`{}` is not a JSON object", path.display()))),
        value => Ok(value),
    }
}

/// Levels of objects and lists, one within the other. The parser has a bound of its own, so this ends.
fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// A JSON file, `None` where there is none.
fn read_json(path: &Path, bytes_max: u64) -> Result<Option<Value>> {
    let Some(bytes) = files::read_bounded(path, bytes_max)? else { return Ok(None) };
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err(Error::refused(format!("`{}`: it starts with a byte order mark; save it as plain UTF-8", path.display())));
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|error| Error::refused(format!("`{}`: {error}", path.display())))
}

fn format_of(dtype: Dtype) -> Option<Format> {
    match dtype {
        Dtype::F32 => Some(Format::F32),
        Dtype::F16 => Some(Format::F16),
        Dtype::BF16 => Some(Format::BF16),
        _ => None,
    }
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;
