//! What there is of a model that need not be whole: for a person who wants to know what it is and what it lacks.

use std::collections::BTreeSet;
use std::path::Path;

use coli_base::{Error, Result};
use serde_json::json;

use super::folder::{Folder, claims};
use super::{
    Checkpoint, INDEX, INDEX_BYTES_MAX, NEEDED, SINGLE, check_folder, gguf_within, is_gguf, is_unfinished, of_gguf, optional_object,
    read_json,
};
use crate::gguf;
use crate::quantization::{self, Quantization};

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
const TOKENS: &str = "tokenizer.ggml.tokens";

/// A model as far as it is there.
#[derive(Debug)]
pub struct Survey {
    /// What could be read. It is not for running.
    pub checkpoint: Checkpoint,
    /// What is missing or damaged, in words.
    pub missing: Vec<String>,
}

/// Reads the headers that are there.
pub fn survey(path: &Path) -> Result<Survey> {
    if is_gguf(path) {
        let (model, parts) = gguf::open_present(path)?;
        let mut missing: Vec<String> = parts.iter().map(|part| part.display().to_string()).collect();
        let checkpoint = of_gguf(path, model)?;
        if checkpoint.metadata(TOKENS).is_none() {
            missing.push(format!("a tokenizer ({TOKENS})"));
        }
        return Ok(Survey { checkpoint, missing });
    }
    check_folder(path)?;
    survey_folder(path)
}

fn survey_folder(dir: &Path) -> Result<Survey> {
    let mut missing = Vec::new();
    if is_unfinished(dir) {
        missing.push("the rest of an unfinished conversion".to_owned());
    }
    let config = optional_object(&dir.join(CONFIG))?;
    let has_config = config.is_some();
    if !has_config {
        missing.push(CONFIG.to_owned());
    }
    let config = config.unwrap_or_else(|| json!({}));
    let quantization = quantization::read(&config).unwrap_or_else(|error| {
        missing.push(error.within(CONFIG).text);
        Quantization::default()
    });
    let mut folder = Folder::new(dir);
    let index = if dir.join(SINGLE).exists() { None } else { read_json(&dir.join(INDEX), INDEX_BYTES_MAX)? };
    let names: BTreeSet<String> = match &index {
        _ if dir.join(SINGLE).exists() => [SINGLE.to_owned()].into(),
        Some(index) => {
            let claims = claims(index).map_err(|error| error.within(format_args!("`{}`", dir.join(INDEX).display())))?;
            claims.into_values().map(str::to_owned).collect()
        }
        None => folder.names()?,
    };
    if names.is_empty() {
        if !has_config {
            return Err(Error::refused(format!("`{}` is no model; {NEEDED}{}", dir.display(), gguf_within(dir))));
        }
        missing.push("*.safetensors".to_owned());
    }
    for name in names {
        if !dir.join(&name).exists() {
            missing.push(name);
        } else if let Err(error) = folder.add_file(&name) {
            missing.push(error.text);
        }
    }
    if !dir.join(TOKENIZER).exists() {
        missing.push(TOKENIZER.to_owned());
    }
    let (checkpoint, faults) = folder.finish(config, quantization);
    // One is enough to see what is wrong; there may be one for every tensor.
    let more = faults.len().saturating_sub(1);
    missing.extend(faults.into_iter().take(1).map(|fault| match more {
        0 => fault.text,
        more => format!("{}; and {more} more like it", fault.text),
    }));
    Ok(Survey { checkpoint, missing })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Stored, save};

    #[test]
    fn what_is_there_is_read_and_the_rest_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        assert!(survey(dir.path()).unwrap_err().text.contains("is no model"));
        write("x.gguf", "");
        assert!(survey(dir.path()).unwrap_err().text.ends_with("x.gguf` is one"));
        write("config.json", r#"{"model_type":"test"}"#);
        assert_eq!(survey(dir.path()).unwrap().missing, ["*.safetensors", "tokenizer.json"]);
        save(&dir.path().join("one.safetensors"), &[Stored::f32("a", &[2])]);
        write("three.safetensors", "damaged");
        let map = json!({"weight_map": {"a": "one.safetensors", "b": "two.safetensors", "c": "three.safetensors"}});
        write(INDEX, &map.to_string());
        write("tokenizer.json", "{}");
        let found = survey(dir.path()).unwrap();
        assert_eq!((found.checkpoint.model_type().unwrap(), found.checkpoint.tensors().len()), ("test", 1));
        assert!(found.missing[0].contains("three.safetensors` is damaged") || found.missing[0].contains("three.safetensors`: not a"));
        assert_eq!(found.missing[1..], ["two.safetensors"]);
    }
}
