//! Finds golden cases and runs them through the engine that `coli run` uses, plugin library included.
//!
//! A case is a folder `models/<plugin>/golden/<case>/`: the model, `reference.json` (prompt, greedy continuation), `reference.st` (logits
//! and hidden rows of every position) and `gate.toml` (how far logits may be off, and why).
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use coli_app::engine::{self, Engine, OpenRequest};
use coli_chain::{ConvId, Row, Step};
use coli_config::{Baked, Environment};
use coli_place::precision::PrecisionRequest;
use coli_plugin_api::describe::SegmentName;
use coli_plugin_api::program::ports;
use coli_shaders::contract::Sampling;
use coli_test_common::{built, fixture};
use serde::Deserialize;

/// How far a case's logits may be off.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// The largest error as a share of the largest logit.
    #[serde(default = "default_gate")]
    pub logits: f32,
    /// Where the number comes from.
    pub why: String,
}

fn default_gate() -> f32 {
    1e-4
}

/// A golden case.
#[derive(Debug, Clone)]
pub struct Case {
    /// `<plugin>/<case>`.
    pub name: String,
    /// The plugin's id.
    pub plugin: String,
    /// The model's folder.
    pub folder: PathBuf,
    /// Its gate.
    pub gate: Gate,
    /// Prompt ids.
    pub prompt: Vec<u32>,
    /// The greedy continuation.
    pub greedy: Vec<u32>,
}

impl Case {
    fn read(plugin: &str, folder: PathBuf) -> Self {
        let path = folder.join("gate.toml");
        let gate = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let gate: Gate = toml::from_str(&gate).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(gate.logits <= 1e-4 || !gate.why.is_empty(), "{}: a wider gate needs a reason", folder.display());
        let reference = fixture::json(&folder.join("reference.json"));
        let name = format!("{plugin}/{}", folder.file_name().unwrap().to_string_lossy());
        let (prompt, greedy) = (fixture::ids(&reference["prompt"]), fixture::ids(&reference["greedy"]));
        Self { name, plugin: plugin.into(), folder, gate, prompt, greedy }
    }

    /// Prompt and continuation: the tokens whose logits the reference has.
    pub fn ids(&self) -> Vec<u32> {
        [&self.prompt[..], &self.greedy[..]].concat()
    }

    /// The case's model, opened through its plugin's library.
    pub fn open(&self) -> Engine {
        let engine = open(&self.folder);
        assert_eq!(engine.facts().plugin, self.plugin, "{}: another plugin served the model", self.name);
        engine
    }
}

/// Every golden case of every plugin.
pub fn cases() -> Vec<Case> {
    let mut cases = vec![];
    for plugin in folders(&built::plugins()) {
        for folder in folders(&plugin.join("golden")) {
            cases.push(Case::read(&plugin.file_name().unwrap().to_string_lossy(), folder));
        }
    }
    assert!(!cases.is_empty(), "no golden case in {}", built::plugins().display());
    cases
}

fn folders(parent: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(parent) else { return vec![] };
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// Opens a model in exact mode with the plugins of the source tree and the libraries that were built beside this test.
pub fn open(folder: &Path) -> Engine {
    let home = built::program().parent().unwrap().to_path_buf();
    let values = [("COLI_HOME", home.as_os_str()), ("COLI_PLUGIN_PATH", built::plugins().as_os_str())].map(|(k, v)| (k.into(), v.into()));
    let environment = Environment::from_values(values, Baked::default()).unwrap();
    let plugins = engine::discover_plugins(None, &environment).unwrap();
    let request = OpenRequest { precision: PrecisionRequest::Exact, ..OpenRequest::default() };
    let opened = engine::prepare(folder, &plugins, &request).and_then(|prepared| prepared.load(&mut |_, _| {}));
    opened.unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
}

/// Appends ids to a conversation in pieces of `piece` tokens and gives the logits of all of them.
pub fn logits(engine: &mut Engine, conv: ConvId, ids: &[u32], piece: usize) -> Vec<f32> {
    let mut all = vec![];
    for chunk in ids.chunks(piece) {
        let rows = rows(engine, conv, chunk);
        all.extend(step_logits(engine, rows).remove(&conv).unwrap());
    }
    all
}

/// Rows that append `ids` to a conversation, with all outputs wanted.
pub fn rows(engine: &Engine, conv: ConvId, ids: &[u32]) -> Vec<Row> {
    let start = engine.len(conv);
    ids.iter().enumerate().map(|(index, id)| Row::text(conv, start + index as u32, *id, Some(Sampling::GREEDY))).collect()
}

/// Runs a step and gives the logits of each conversation's rows.
pub fn step_logits(engine: &mut Engine, rows: Vec<Row>) -> BTreeMap<ConvId, Vec<f32>> {
    let mut logits: BTreeMap<ConvId, Vec<f32>> = BTreeMap::new();
    let observed = engine.step(&Step { rows }, |ports| {
        if let Some((columns, rows)) = ports.get(ports::LOGITS) {
            for row in 0..rows {
                logits.entry(ConvId(ports.outs[row].conv)).or_default().extend_from_slice(columns.row(row));
            }
        }
        Ok(())
    });
    observed.unwrap();
    logits
}

/// The rows of the residual stream after each segment that gives one: `hidden.0`, `hidden.1`, ... but for the last layer's.
pub fn hidden(engine: &mut Engine, ids: &[u32]) -> BTreeMap<u32, Vec<f32>> {
    let conv = engine.open_conversation();
    let rows = rows(engine, conv, ids);
    let mut hidden: BTreeMap<u32, Vec<f32>> = BTreeMap::new();
    let observed = engine.step(&Step { rows }, |ports| {
        let number = match ports.segment {
            SegmentName::Embed => 0,
            SegmentName::Layer(index) => index + 1,
            _ => return Ok(()),
        };
        let (columns, rows) = ports.get(ports::STREAM).unwrap();
        (0..rows).for_each(|row| hidden.entry(number).or_default().extend_from_slice(columns.row(row)));
        Ok(())
    });
    observed.unwrap();
    engine.close_conversation(conv);
    hidden
}

/// The greedy continuation of a prompt.
pub fn greedy(engine: &mut Engine, prompt: &[u32], count: usize) -> Vec<u32> {
    let conv = engine.open_conversation();
    let mut next = engine.append(conv, prompt, Sampling::GREEDY, || Ok(())).unwrap();
    let mut tokens = vec![next];
    while tokens.len() < count {
        next = engine.append(conv, &[next], Sampling::GREEDY, || Ok(())).unwrap();
        tokens.push(next);
    }
    engine.close_conversation(conv);
    tokens
}
