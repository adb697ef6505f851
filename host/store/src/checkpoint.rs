//! A stored model's folder: `config.json` and the tensors of all its safetensors files, by name.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Component, Path, PathBuf};

use coli_base::{Error, Result, files};
use coli_plugin_api::describe::TensorFact;
use coli_shaders::formats::Format;
use safetensors::Dtype;
use serde_json::Value;

use crate::file::OpenFile;
use crate::header;

const NEEDED: &str = "a model is a folder with config.json, tokenizer.json and *.safetensors";
/// Files beside the tensors that make a folder a model.
const OWN_FILES: [&str; 5] = ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", INDEX];
const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

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

/// A folder whose headers have been checked. Its files stay open, so that what is read later is what was checked.
#[derive(Debug)]
pub struct Checkpoint {
    dir: PathBuf,
    config: Value,
    files: Vec<OpenFile>,
    tensors: Vec<Tensor>,
    by_name: HashMap<String, usize>,
}

/// Opens the model in `dir` and checks everything that can be checked without reading weights.
pub fn open(dir: &Path) -> Result<Checkpoint> {
    check_folder(dir)?;
    let missing = || Error::refused(format!("`{}` is missing; {NEEDED}", dir.join("config.json").display()));
    let config = optional_object(&dir.join("config.json"))?.ok_or_else(missing)?;
    if depth(&config) > DEPTH_MAX {
        let path = dir.join("config.json");
        return Err(Error::refused(format!("`{}`: its values are nested more than {DEPTH_MAX} deep", path.display())));
    }
    let mut checkpoint = Checkpoint { dir: dir.to_path_buf(), config, files: Vec::new(), tensors: Vec::new(), by_name: HashMap::new() };
    if dir.join(SINGLE).exists() {
        checkpoint.add_file(SINGLE)?;
    } else if let Some(index) = read_json(&dir.join(INDEX), INDEX_BYTES_MAX)? {
        checkpoint.add_indexed(&index).map_err(|error| error.within(format_args!("`{}`", dir.join(INDEX).display())))?;
    } else {
        checkpoint.add_all()?;
    }
    Ok(checkpoint)
}

impl Checkpoint {
    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// `config.json`, an object.
    pub fn config(&self) -> &Value {
        &self.config
    }

    /// The architecture's name, by which a plugin is found.
    pub fn model_type(&self) -> Result<&str> {
        match self.config.get("model_type") {
            Some(Value::String(name)) => Ok(name),
            Some(other) => Err(Error::refused(format!("`{}`: model_type is {other}, not a name", self.dir.join("config.json").display()))),
            None => Err(Error::refused(format!("`{}` has no model_type", self.dir.join("config.json").display()))),
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
        self.files.iter().any(|file| same(&file.path)) || OWN_FILES.iter().any(|name| same(&self.dir.join(name)))
    }

    /// A JSON object in a file of the folder, `None` where there is no such file.
    pub fn optional_object(&self, name: &str) -> Result<Option<Value>> {
        optional_object(&self.dir.join(name))
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
        let fail = |error: io::Error| Error::refused(format!("`{}`: {error}", self.dir.display()));
        let mut names = BTreeSet::new();
        for entry in std::fs::read_dir(&self.dir).map_err(fail)? {
            let name = entry.map_err(fail)?.file_name();
            if let Some(name) = name.to_str().filter(|name| name.ends_with(".safetensors")) {
                names.insert(name.to_owned());
            }
        }
        if names.is_empty() {
            return Err(Error::refused(format!("`{}` has no *.safetensors; {NEEDED}", self.dir.display())));
        }
        names.iter().try_for_each(|name| self.add_file(name))
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
        Ok(_) if dir.extension().is_some_and(|end| end.eq_ignore_ascii_case("gguf")) => {
            format!("`{shown}`: GGUF files are not implemented; {NEEDED}")
        }
        Ok(_) => format!("`{shown}` is not a folder; {NEEDED}"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => format!("`{shown}` does not exist; {NEEDED}"),
        Err(error) => format!("`{shown}`: {error}"),
    }))
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
mod tests {
    use super::*;
    use crate::testing::{Stored, model, save};
    use coli_base::Kind;
    use serde_json::json;
    use tempfile::TempDir;

    /// A folder with two shards: `a` in the first, `b` and `c` in the second.
    fn shards() -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config.json"), "{}").unwrap();
        save(&dir.path().join("one.safetensors"), &[Stored::f32("a", &[2])]);
        save(&dir.path().join("two.safetensors"), &[Stored::bf16("b", &[2]), Stored::bf16("c", &[1])]);
        dir
    }

    fn with_index(dir: &TempDir, map: Value) -> Result<Checkpoint> {
        std::fs::write(dir.path().join(INDEX), json!({ "weight_map": map }).to_string()).unwrap();
        open(dir.path())
    }

    fn refusal(result: Result<Checkpoint>) -> String {
        let error = result.unwrap_err();
        assert_eq!(error.kind, Kind::Refused);
        error.text
    }

    #[test]
    fn a_single_file_is_a_model() {
        let dir = model(&[Stored::bf16("w", &[2, 3]), Stored::raw("q", Dtype::I8, &[3], vec![0; 3])]);
        save(&dir.path().join("extra.safetensors"), &[Stored::f32("other", &[1])]);
        std::fs::write(dir.path().join("generation_config.json"), r#"{"eos_token_id":0}"#).unwrap();
        let checkpoint = open(dir.path()).unwrap();
        assert_eq!(checkpoint.model_type().unwrap(), "test");
        assert_eq!(checkpoint.dir(), dir.path());
        let facts: Vec<_> = checkpoint.facts().into_iter().map(|fact| (fact.name, fact.kind, fact.shape)).collect();
        assert_eq!(facts, [("q".into(), "i8".into(), vec![3]), ("w".into(), "bf16".into(), vec![2, 3])]);
        assert_eq!(checkpoint.tensors()[1].bytes, 12);
        assert_eq!(checkpoint.optional_object("generation_config.json").unwrap(), Some(json!({"eos_token_id": 0})));
        assert_eq!(checkpoint.optional_object("none.json").unwrap(), None);
        for other in ["[]", "null", "3", "\"x\""] {
            std::fs::write(dir.path().join("other.json"), other).unwrap();
            let error = checkpoint.optional_object("other.json").unwrap_err();
            assert!(error.kind == Kind::Refused && error.text.ends_with("other.json` is not a JSON object"), "{error}");
        }
    }

    #[test]
    fn shards_need_no_index() {
        let dir = shards();
        let names = |checkpoint: Checkpoint| checkpoint.tensors().iter().map(|t| t.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(open(dir.path()).unwrap()), ["a", "b", "c"]);
        // With an index, the folder's other files are not the model's.
        save(&dir.path().join("three.safetensors"), &[Stored::f32("a", &[2])]);
        let map = json!({"a": "one.safetensors", "b": "two.safetensors", "c": "two.safetensors"});
        assert_eq!(names(with_index(&dir, map).unwrap()), ["a", "b", "c"]);
    }

    #[test]
    fn a_duplicate_names_both_files() {
        let dir = shards();
        save(&dir.path().join("three.safetensors"), &[Stored::f32("a", &[2])]);
        let text = refusal(open(dir.path()));
        assert!(text.contains("`a`") && text.contains("one.safetensors") && text.contains("three.safetensors"), "{text}");
    }

    #[test]
    fn a_false_index_is_refused() {
        let dir = shards();
        let text = refusal(with_index(&dir, json!({"a": "one.safetensors", "d": "four.safetensors"})));
        assert!(text.contains("four.safetensors` is missing"), "{text}");
        let text = refusal(with_index(&dir, json!({"a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors"})));
        assert!(text.contains("`b` should be in `one.safetensors`") && text.contains("two.safetensors"), "{text}");
        let text = refusal(with_index(&dir, json!({"a": "one.safetensors", "d": "one.safetensors"})));
        assert!(text.contains("`d`") && text.contains("no shard"), "{text}");
        for bad in [json!({}), json!([]), json!({"a": 3}), json!({"a": "../one.safetensors"}), json!({"a": ""}), json!({"a": "/x"})] {
            assert!(refusal(with_index(&dir, bad)).contains("weight_map"));
        }
        std::fs::write(dir.path().join(INDEX), "{").unwrap();
        assert!(refusal(open(dir.path())).contains(INDEX));
    }

    #[test]
    fn what_is_missing_is_named() {
        let dir = tempfile::tempdir().unwrap();
        assert!(refusal(open(&dir.path().join("none"))).contains("does not exist; a model is a folder with config.json"));
        assert!(refusal(open(dir.path())).contains("config.json` is missing"));
        for (text, says) in [("[]", "object"), ("{", "EOF"), ("", "EOF")] {
            std::fs::write(dir.path().join("config.json"), text).unwrap();
            let refused = refusal(open(dir.path()));
            assert!(refused.contains("config.json") && refused.contains(says), "{refused}");
        }
        std::fs::write(dir.path().join("config.json"), "{}").unwrap();
        assert!(refusal(open(dir.path())).contains("no *.safetensors"));
        assert!(refusal(open(&dir.path().join("config.json"))).contains("is not a folder"));
        std::fs::write(dir.path().join("x.gguf"), "").unwrap();
        assert!(refusal(open(&dir.path().join("x.gguf"))).contains("GGUF"));
    }

    #[test]
    fn a_config_is_nested_no_deeper_than_any_that_is_published() {
        let dir = shards();
        let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        let with = |levels: usize| {
            std::fs::write(dir.path().join("config.json"), nested(levels)).unwrap();
            open(dir.path())
        };
        assert!(with(DEPTH_MAX).is_ok());
        for levels in [DEPTH_MAX + 1, 127, 128, 100_000] {
            let text = refusal(with(levels));
            assert!(text.contains("config.json`") && (text.contains("nested") || text.contains("recursion limit")), "{text}");
        }
    }

    #[test]
    fn a_model_type_is_a_name() {
        let dir = shards();
        assert!(open(dir.path()).unwrap().model_type().unwrap_err().text.contains("no model_type"));
        std::fs::write(dir.path().join("config.json"), r#"{"model_type":3}"#).unwrap();
        assert!(open(dir.path()).unwrap().model_type().unwrap_err().text.contains("model_type is 3"));
    }
}
