//! A plugin's manifest, `<name>.plugin.toml`: what it is, what it serves and what it needs. It is read before its library is opened.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;
use std::str::FromStr;

use coli_base::{Error, Result};
use coli_plugin_api::own_op::is_own;
use toml::{Table, Value};

use crate::text::one_line;

/// What a manifest's file name ends in.
pub const MANIFEST_SUFFIX: &str = ".plugin.toml";
/// A manifest is small; a larger file is something else.
const BYTES_MAX: u64 = 64 << 10;
const NAME_MAX: usize = 64;
const KEYS: [&str; 9] = ["id", "version", "abi", "model_types", "gguf_architectures", "ops", "own_ops", "library", "needs_tokenizer"];

/// The ABI that a plugin was built against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbiVersion {
    /// Must be the host's.
    pub major: u32,
    /// How many optional fields the plugin knows.
    pub minor: u32,
}

/// A manifest whose fields have been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// What `--model-plugin` takes.
    pub id: String,
    /// The plugin's own version.
    pub version: String,
    /// The ABI it was built against.
    pub abi: AbiVersion,
    /// `model_type`s of a `config.json` that it serves.
    pub model_types: Vec<String>,
    /// Architectures of GGUF files that it serves.
    pub gguf_architectures: Vec<String>,
    /// Ops that its recordings use, as `name@version`.
    pub ops: Vec<String>,
    /// Ops that it brings, as `vendor.op@version`.
    pub own_ops: Vec<String>,
    /// The stem of its library's file name, such as `coli_mine`.
    pub library: String,
    /// Whether it asks for the text of each token id.
    pub needs_tokenizer: bool,
}

impl Manifest {
    /// The ops that the host must have: what the plugin records, but for what it brings.
    pub fn host_ops(&self) -> impl Iterator<Item = &String> {
        self.ops.iter().filter(|op| !self.own_ops.contains(op))
    }

    /// Reads and checks a manifest file.
    pub fn read(path: &Path) -> Result<Self> {
        Self::try_read(path).map_err(|why| Error::refused(format!("{}: {why}", path.display())))
    }

    /// [`Manifest::read`] with an error that leaves the file's name to the caller.
    pub(crate) fn try_read(path: &Path) -> std::result::Result<Self, String> {
        let text = String::from_utf8(read_bounded(path)?).map_err(|_| "is not UTF-8 text")?;
        Self::parse(&text)
    }

    /// The library's file name on this platform.
    pub fn library_file(&self) -> String {
        format!("{}{}{}", std::env::consts::DLL_PREFIX, self.library, std::env::consts::DLL_SUFFIX)
    }

    /// Checks a manifest's text. The error names the key and what was expected.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        let table: Table = text.parse().map_err(|error| syntax(text, &error))?;
        if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!("key `{}`: unknown; expected one of {}", one_line(key, NAME_MAX), KEYS.join(", ")));
        }
        let keys = Keys(&table);
        let manifest = Self {
            id: keys.text("id", "lowercase letters, digits, `_` and `-`, at most 64", is_id)?,
            version: keys.text("version", "a version such as \"0.1.0\"", is_version)?,
            abi: keys.abi()?,
            model_types: keys.list("model_types", Some(&[]), "names of letters, digits, `_`, `-` and `.`", is_name)?,
            gguf_architectures: keys.list("gguf_architectures", Some(&[]), "names of letters, digits, `_`, `-` and `.`", is_name)?,
            ops: keys.list("ops", None, "op names with a version, such as \"norm@1\"", is_op)?,
            own_ops: keys.list("own_ops", Some(&[]), "op names with a vendor and a version, such as \"vendor.op@1\"", is_own)?,
            library: keys.text("library", "the stem of a file name, such as \"coli_mine\"", is_stem)?,
            needs_tokenizer: keys.flag("needs_tokenizer")?,
        };
        if manifest.model_types.is_empty() && manifest.gguf_architectures.is_empty() {
            return Err("key `model_types`: expected at least one here or in `gguf_architectures`, else no model is served".into());
        }
        Ok(manifest)
    }
}

/// The bytes of a regular file that is not too large.
fn read_bounded(path: &Path) -> std::result::Result<Vec<u8>, String> {
    // Asked before opening: opening a pipe would wait for its other end.
    let facts =
        std::fs::metadata(path).map_err(|error| match path.ancestors().take(2).find(|part| part.is_symlink() && !part.exists()) {
            Some(link) if error.kind() == ErrorKind::NotFound => format!("cannot be read: the link {} leads nowhere", link.display()),
            _ => format!("cannot be read: {error}"),
        })?;
    if !facts.is_file() {
        return Err("is not a file".into());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| format!("cannot be read: {error}"))?;
    // One byte more than allowed tells a file that is too large from one that just fits, whatever its stated size is.
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(format!("is larger than the {} KiB that a manifest may have", BYTES_MAX >> 10));
    }
    Ok(bytes)
}

/// A syntax error with its line.
fn syntax(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map(|before| format!("line {}: ", before.matches('\n').count() + 1)).unwrap_or_default();
    format!("{line}is not TOML: {}", one_line(error.message(), 200))
}

/// Typed access to a manifest's keys.
struct Keys<'a>(&'a Table);

impl Keys<'_> {
    fn text(&self, key: &str, expected: &str, valid: fn(&str) -> bool) -> std::result::Result<String, String> {
        match self.0.get(key) {
            None => Err(format!("key `{key}`: missing; expected {expected}")),
            Some(Value::String(text)) if valid(text) => Ok(text.clone()),
            Some(other) => Err(format!("key `{key}`: expected {expected}, found {}", found(other))),
        }
    }

    fn list(
        &self,
        key: &str,
        default: Option<&[String]>,
        expected: &str,
        valid: fn(&str) -> bool,
    ) -> std::result::Result<Vec<String>, String> {
        let items = match (self.0.get(key), default) {
            (Some(Value::Array(items)), _) => items,
            (None, Some(default)) => return Ok(default.to_vec()),
            (None, None) => return Err(format!("key `{key}`: missing; expected a list of {expected}")),
            (Some(other), _) => return Err(format!("key `{key}`: expected a list of {expected}, found {}", found(other))),
        };
        let mut seen = HashSet::new();
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Value::String(text) if valid(text) && seen.insert(text) => texts.push(text.clone()),
                Value::String(text) if valid(text) => return Err(format!("key `{key}`: {} is there twice", found(item))),
                other => return Err(format!("key `{key}`: expected a list of {expected}, found {} in it", found(other))),
            }
        }
        Ok(texts)
    }

    fn abi(&self) -> std::result::Result<AbiVersion, String> {
        let expected = "major.minor, such as \"0.0\"";
        self.text("abi", expected, |text| text.parse::<AbiVersion>().is_ok())?.parse()
    }

    fn flag(&self, key: &str) -> std::result::Result<bool, String> {
        match self.0.get(key) {
            None => Ok(false),
            Some(Value::Boolean(flag)) => Ok(*flag),
            Some(other) => Err(format!("key `{key}`: expected true or false, found {}", found(other))),
        }
    }
}

/// A value as a message shows it.
fn found(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".into(),
        Value::Table(_) => "a table".into(),
        other => one_line(&other.to_string(), 80),
    }
}

fn all_of(text: &str, max: usize, allowed: impl Fn(char) -> bool) -> bool {
    !text.is_empty() && text.len() <= max && text.chars().all(allowed)
}

fn is_id(text: &str) -> bool {
    all_of(text, NAME_MAX, |c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c))
}

fn is_name(text: &str) -> bool {
    all_of(text, NAME_MAX, |c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

fn is_version(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit()) && all_of(text, NAME_MAX, |c| c.is_ascii_alphanumeric() || ".+-".contains(c))
}

/// No separator and no dot: the name cannot leave its folder, and prefix and suffix are the platform's.
fn is_stem(text: &str) -> bool {
    all_of(text, NAME_MAX, |c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

fn is_op(text: &str) -> bool {
    text.split_once('@').is_some_and(|(name, version)| {
        all_of(name, NAME_MAX, |c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c)) && number(version).is_some()
    })
}

/// A number in its one spelling: no sign, no leading zero.
fn number(text: &str) -> Option<u32> {
    text.parse::<u32>().ok().filter(|number| number.to_string() == text)
}

impl FromStr for AbiVersion {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let parts = text.split_once('.').and_then(|(major, minor)| Some(Self { major: number(major)?, minor: number(minor)? }));
        parts.ok_or_else(|| format!("`{}` is not major.minor", one_line(text, NAME_MAX)))
    }
}

impl fmt::Display for AbiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
