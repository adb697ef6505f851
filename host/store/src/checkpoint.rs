//! A stored model: a folder with `config.json` and the tensors of all its safetensors files, or a GGUF file with all of that in it.

mod folder;
mod survey;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use coli_base::{Error, Result, files};
use coli_plugin_api::describe::{Container, TensorFact};
use coli_shaders::formats::Format;
use serde_json::Value;

pub use survey::{Survey, survey};

use crate::file::OpenFile;
use crate::packed::Encoding;
use crate::{convert, gguf, quantization};
use folder::Folder;
pub(crate) use folder::has_twos_note;

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

/// A stored tensor, with its scales where they are stored apart: these are part of it, and no tensor of their own.
#[derive(Debug)]
pub struct Tensor {
    /// Its name, as models know it.
    pub name: String,
    /// Its format, for example `bf16`; where only a model knows how long a row is, the types of its values and scales, `u8+f32`.
    pub kind: String,
    /// Dimensions, outermost first: of its numbers, or of its bytes where only a model knows how long a row is.
    pub shape: Vec<u64>,
    /// Bytes it takes, scales included.
    pub bytes: u64,
    pub(crate) encoding: Encoding,
    pub(crate) values: Place,
    pub(crate) scales: Option<Place>,
}

/// Where bytes are stored. They end within their file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Position in the checkpoint's files.
    pub(crate) file: usize,
    /// From the start of that file.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl Tensor {
    /// Whether weights of its type can be used.
    pub fn is_served(&self) -> bool {
        !matches!(self.encoding, Encoding::Unread(_))
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

/// Whether `coli convert` has begun a folder and not ended it.
fn is_unfinished(dir: &Path) -> bool {
    dir.join(convert::STATE).symlink_metadata().is_ok()
}

fn open_folder(dir: &Path) -> Result<Checkpoint> {
    if is_unfinished(dir) {
        return Err(Error::refused(format!("`{}` is an unfinished conversion; give its `coli convert` command again", dir.display())));
    }
    let missing = || Error::refused(format!("`{}` is missing; {NEEDED}{}", dir.join("config.json").display(), gguf_within(dir)));
    let config = optional_object(&dir.join("config.json"))?.ok_or_else(missing)?;
    if depth(&config) > DEPTH_MAX {
        let path = dir.join("config.json");
        return Err(Error::refused(format!("`{}`: its values are nested more than {DEPTH_MAX} deep", path.display())));
    }
    let quantization =
        quantization::read(&config).map_err(|error| error.within(format_args!("`{}`", dir.join("config.json").display())))?;
    let mut folder = Folder::new(dir);
    if dir.join(SINGLE).exists() {
        folder.add_file(SINGLE)?;
    } else if let Some(index) = read_json(&dir.join(INDEX), INDEX_BYTES_MAX)? {
        folder.add_indexed(&index).map_err(|error| error.within(format_args!("`{}`", dir.join(INDEX).display())))?;
    } else {
        folder.add_all()?;
    }
    let (checkpoint, faults) = folder.finish(config, quantization);
    faults.into_iter().next().map_or(Ok(checkpoint), Err)
}

fn of_gguf(path: &Path, model: gguf::Model) -> Result<Checkpoint> {
    let gguf::Model { metadata, files, tensors } = model;
    let config = metadata.config().map_err(|error| error.within(format_args!("`{}`", path.display())))?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut checkpoint = Checkpoint::new(path, dir, Container::Gguf, config);
    (checkpoint.metadata, checkpoint.files) = (metadata, files);
    for (file, gguf::Entry { name, kind, shape, offset, bytes }) in tensors {
        let encoding = Format::of_ggml(kind).map_or(Encoding::Unread(None), Encoding::Known);
        let (kind, values) = (gguf::type_name(kind).into_owned(), Place { file, offset, bytes });
        checkpoint.add(Tensor { name, kind, shape, bytes, encoding, values, scales: None });
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

    /// The file that bytes are in.
    pub(crate) fn file_at(&self, place: Place) -> &OpenFile {
        &self.files[place.file]
    }

    /// No other tensor has its name.
    fn add(&mut self, tensor: Tensor) {
        self.by_name.insert(tensor.name.clone(), self.tensors.len());
        self.tensors.push(tensor);
    }
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

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;
