//! A model's own chat template: where it stands, and the text that it makes of messages.
//!
//! A template is written for Jinja with what the common Python implementation adds: Python's methods, `raise_exception`, `strftime_now`,
//! JSON with spaces and without HTML's escapes. It is a program that came with a model, so it has a bounded amount of work and memory.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use coli_base::{Error, Result, files};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde};
use minijinja::{Environment, ErrorKind, context};
use serde_json::{Map, Value};

use crate::calendar;
use crate::gguf::GgufTokenizer;
use crate::python_json;

const TEMPLATE_FILE: &str = "chat_template.jinja";
const CONFIG_FILE: &str = "tokenizer_config.json";
const KEY: &str = "chat_template";

/// Published templates have some kilobytes; the largest `tokenizer_config.json` some megabytes.
const TEMPLATE_BYTES_MAX: u64 = 1 << 20;
const CONFIG_BYTES_MAX: u64 = 64 << 20;

/// Instructions, and blocks of 64 bytes made: 256 MB, of which a template that does its work uses a few thousandths.
const FUEL: u64 = 4 << 20;

/// The tokens that a template may name.
const TOKENS: [&str; 7] = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/// A turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who speaks: `system`, `user`, `assistant`.
    pub role: &'static str,
    /// What is said.
    pub content: String,
}

/// A chat template and the special tokens that it may name.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatTemplate {
    source: String,
    /// Where it stands, for messages.
    origin: String,
    tokens: Vec<(String, String)>,
}

impl ChatTemplate {
    /// The template of the model in `dir`: `chat_template.jinja`, else that of `tokenizer_config.json`.
    pub fn open(dir: &Path) -> Result<Self> {
        let config = config(&dir.join(CONFIG_FILE))?;
        let tokens = special_tokens(&config);
        let path = dir.join(TEMPLATE_FILE);
        if let Some(bytes) = files::read_bounded(&path, TEMPLATE_BYTES_MAX)? {
            let origin = format!("`{}`", path.display());
            let source = String::from_utf8(bytes)
                .map_err(|error| Error::refused(format!("{origin}: not UTF-8 at byte {}", error.utf8_error().valid_up_to())))?;
            return Ok(Self { source, origin, tokens });
        }
        let origin = format!("`{}`: {KEY}", dir.join(CONFIG_FILE).display());
        match template_of(config.get(KEY)) {
            Ok(Some(source)) => Ok(Self { source, origin, tokens }),
            Ok(None) => Err(Error::refused(format!(
                "the model in `{}` has no chat template, neither {TEMPLATE_FILE} nor {KEY} in {CONFIG_FILE}; leave --chat out",
                dir.display()
            ))),
            Err(why) => Err(Error::refused(format!("{origin}: {why}"))),
        }
    }

    /// The template in the metadata of a GGUF file.
    pub fn from_gguf(gguf: &GgufTokenizer) -> Result<Self> {
        let key = "tokenizer.chat_template";
        let source = gguf.chat_template.clone();
        let source = source.ok_or_else(|| Error::refused(format!("the model has no chat template ({key}); leave --chat out")))?;
        if source.len() as u64 > TEMPLATE_BYTES_MAX {
            return Err(Error::refused(format!("{key}: {} bytes, expected at most {TEMPLATE_BYTES_MAX}", source.len())));
        }
        let named = [("bos_token", gguf.bos()), ("eos_token", gguf.eos()), ("unk_token", gguf.unk()), ("pad_token", gguf.pad)];
        let tokens = named.into_iter().filter_map(|(name, id)| Some((name.to_owned(), gguf.text(id)?.to_owned())));
        Ok(Self { source, origin: key.into(), tokens: tokens.collect() })
    }

    /// The text of these messages, up to where the assistant's answer begins. `now` is what `strftime_now` tells, in UTC.
    pub fn render(&self, messages: &[Message], now: SystemTime) -> Result<String> {
        let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs());
        let environment = environment(seconds).map_err(|error| self.refused(&error))?;
        let turn = |message: &Message| context! { role => message.role, content => message.content.as_str() };
        let messages: Vec<_> = messages.iter().map(turn).collect();
        let given = context! { messages, add_generation_prompt => true, tools => (), documents => () };
        let context = context! { ..given, ..minijinja::Value::from_pairs(self.tokens.iter().cloned()) };
        let source = without_generation_marks(&self.source);
        let text = environment.template_from_str(&source).and_then(|template| template.render(context));
        text.map_err(|error| self.refused(&error))
    }

    fn refused(&self, error: &minijinja::Error) -> Error {
        let line = error.line().map_or(String::new(), |line| format!(" line {line}:"));
        let why = match error.kind() {
            ErrorKind::OutOfFuel => "it does not end within its bounds".into(),
            kind => error.detail().map_or_else(|| kind.to_string(), |detail| detail.to_string()),
        };
        Error::refused(format!("{}:{line} {why}", self.origin))
    }
}

/// `tokenizer_config.json`, an empty object where there is none.
fn config(path: &Path) -> Result<Value> {
    let Some(bytes) = files::read_bounded(path, CONFIG_BYTES_MAX)? else { return Ok(Value::Object(Map::new())) };
    serde_json::from_slice(&bytes).map_err(|error| Error::refused(format!("`{}`: {error}", path.display())))
}

/// A special token is a text, or an object with its text.
fn special_tokens(config: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().or_else(|| value.get("content")?.as_str()).map(str::to_string);
    TOKENS.iter().filter_map(|name| Some((name.to_string(), text(config.get(*name)?)?))).collect()
}

/// A template is a text, or the one named `default` in a list of named ones.
fn template_of(value: Option<&Value>) -> std::result::Result<Option<String>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Array(list)) => {
            let named = list.iter().find(|entry| entry.get("name").and_then(Value::as_str) == Some("default"));
            let text = named.and_then(|entry| entry.get("template")?.as_str());
            text.map(|text| Some(text.into())).ok_or_else(|| "none of its templates is named `default`".into())
        }
        Some(other) => Err(format!("expected a text or a list of named ones, not {}", kind(other))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Object(_) => "an object",
        Value::Bool(_) => "true or false",
        _ => "a number",
    }
}

fn environment(seconds: u64) -> std::result::Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_fuel(Some(FUEL));
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", |message: String| -> std::result::Result<(), minijinja::Error> {
        Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
    });
    environment.add_function("strftime_now", move |format: String| {
        calendar::format(&format, seconds)
            .ok_or_else(|| minijinja::Error::new(ErrorKind::InvalidOperation, format!("strftime_now does not know the format {format}")))
    });
    environment.add_filter("tojson", to_json);
    Ok(environment)
}

fn to_json(value: Serde<Value>, indent: Option<usize>, options: Kwargs) -> std::result::Result<minijinja::Value, minijinja::Error> {
    let indent = match indent {
        Some(indent) => Some(indent),
        None => options.get::<Option<usize>>("indent")?,
    };
    // The other options of Python's function that templates give; their usual values are what is done here.
    let ascii = options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false);
    let sorted = options.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    options.assert_all_used()?;
    if ascii || sorted {
        return Err(minijinja::Error::new(ErrorKind::InvalidOperation, "tojson: ensure_ascii and sort_keys are not implemented"));
    }
    Ok(minijinja::Value::from_safe_string(python_json::text(&value.0, indent)))
}

/// The source without `{% generation %}` and its end: they mark the assistant's words for training and print nothing.
fn without_generation_marks(source: &str) -> String {
    let mut out = String::new();
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start);
        out.push_str(before);
        let Some(end) = tag.find("%}") else { break };
        let inner = &tag[2..end];
        let word = inner.trim_start_matches(['-', '+']).trim_end_matches(['-', '+']).trim();
        let replaced = match word {
            "generation" => inner.replace("generation", "if true"),
            "endgeneration" => inner.replace("endgeneration", "endif"),
            _ => inner.into(),
        };
        out.push_str(&format!("{{%{replaced}%}}"));
        rest = &tag[end + 2..];
    }
    out + rest
}

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;
