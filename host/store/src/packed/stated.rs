//! What a file's metadata states of its tensors: `coli.formats` and `coli.shapes`, which we write, and `colibri.fmt` of the source engine.
//!
//! Each is a JSON object in a string, from names of tensors to a format's name, or to dimensions. It is believed only as far as it fits the
//! bytes. What is stated of tensors that are not there harms nobody: a file may be one of many.

use std::collections::HashMap;

use coli_base::{Error, Result};
use coli_shaders::formats::Format;
use serde_json::{Map, Value};

use crate::header::Notes;

const FORMATS: &str = "coli.formats";
const SHAPES: &str = "coli.shapes";
const SOURCE_FORMATS: &str = "colibri.fmt";
/// More dimensions than any tensor has.
const DIMS_MAX: usize = 16;

/// All statements, by the tensor's name.
#[derive(Debug, Default)]
pub(crate) struct Stated(HashMap<String, Statement>);

/// What is stated of a tensor.
#[derive(Debug, Default)]
pub(super) struct Statement {
    pub(super) formats: Option<Claim>,
    pub(super) shape: Option<Vec<u64>>,
}

/// A format by a name that may stand for several.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    /// The name that was stated.
    pub(super) word: String,
    /// What it may mean; empty for a format that is known and not read.
    pub(super) formats: Vec<Format>,
    /// Whether it is a name of ours, which means one thing.
    pub(super) exact: bool,
}

impl Stated {
    pub(super) fn get(&self, name: &str) -> Option<&Statement> {
        self.0.get(name)
    }

    /// Adds what a file states.
    pub(crate) fn add(&mut self, notes: &Notes) -> Result<()> {
        for (name, value) in object(notes, FORMATS)? {
            let format = value.as_str().and_then(Format::by_name).ok_or_else(|| unknown(FORMATS, &name, &value))?;
            self.claim(name, Claim { word: format.name().into(), formats: vec![format], exact: true })?;
        }
        for (name, value) in object(notes, SOURCE_FORMATS)? {
            let word = value.as_str().unwrap_or_default();
            let formats = source_formats(word).ok_or_else(|| unknown(SOURCE_FORMATS, &name, &value))?;
            self.claim(name, Claim { word: word.into(), formats, exact: false })?;
        }
        for (name, value) in object(notes, SHAPES)? {
            let dims =
                dims(&value).ok_or_else(|| Error::refused(format!("{SHAPES}: tensor `{name}` has {value}, no list of dimensions")))?;
            let known = &mut self.0.entry(name.clone()).or_default().shape;
            if let Some(known) = known.as_ref().filter(|known| **known != dims) {
                return Err(Error::refused(format!("{SHAPES}: tensor `{name}` is stated as {known:?} and as {dims:?}")));
            }
            *known = Some(dims);
        }
        Ok(())
    }

    fn claim(&mut self, name: String, claim: Claim) -> Result<()> {
        let twice = |a: &str, b: &str| Error::refused(format!("metadata states tensor `{name}` as {a} and as {b}"));
        let known = self.0.get(&name).and_then(|statement| statement.formats.as_ref());
        let joined = match known {
            None => claim,
            Some(known) => {
                let both: Vec<Format> = known.formats.iter().copied().filter(|format| claim.formats.contains(format)).collect();
                if both.is_empty() && known.word != claim.word {
                    return Err(twice(&known.word, &claim.word));
                }
                Claim { exact: known.exact || claim.exact, formats: both, word: claim.word }
            }
        };
        self.0.entry(name).or_default().formats = Some(joined);
        Ok(())
    }
}

/// The JSON object under a key, empty where there is none.
fn object(notes: &Notes, key: &str) -> Result<Map<String, Value>> {
    let Some(text) = notes.get(key) else { return Ok(Map::new()) };
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(Error::refused(format!("its metadata `{key}` is not a JSON object"))),
        Err(error) => Err(Error::refused(format!("its metadata `{key}`: {error}"))),
    }
}

fn unknown(key: &str, name: &str, value: &Value) -> Error {
    Error::refused(format!("{key}: tensor `{name}` is stated as {value}, a format that coli does not know"))
}

fn dims(value: &Value) -> Option<Vec<u64>> {
    let list = value.as_array().filter(|list| list.len() <= DIMS_MAX)?;
    list.iter().map(Value::as_u64).collect()
}

/// What a name of the source engine's may mean. It names how values are stored; how scales are, and which convention pairs of four-bit
/// numbers follow, shows elsewhere.
fn source_formats(word: &str) -> Option<Vec<Format>> {
    Some(match word {
        "f32" => vec![Format::F32],
        "int8-row" => vec![Format::INT8_ROW],
        "int4-row" => vec![Format::INT4_ROW, Format::INT4_ROW_TC],
        "int4-grouped" => vec![Format::INT4_G64, Format::INT4_G64_TC],
        "int3-g64" => vec![Format::INT3_G64],
        "mxfp4" => vec![Format::MXFP4],
        "fp8-e4m3" => vec![
            Format::FP8_128X128_F32,
            Format::FP8_128X128_BF16,
            Format::FP8_128X128_UE8M0,
            Format::FP8_32X32_F32,
            Format::FP8_32X32_BF16,
            Format::FP8_32X32_UE8M0,
        ],
        "fp8-e4m3-b128" => vec![Format::FP8_128X128_F32, Format::FP8_128X128_BF16, Format::FP8_128X128_UE8M0],
        "int2-row" | "e8-iq3" | "e8-iq3-lattice" | "int4-rans256" | "int4-rans256-g0" => vec![],
        _ => return None,
    })
}
