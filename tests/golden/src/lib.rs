//! Finds golden cases and runs them through the engine that `coli run` uses, plugin library included.
//!
//! A case is a folder `models/<plugin>/golden/<case>/`: the model, `reference.json` (prompt, greedy continuation), `reference.st` (logits
//! and hidden rows of every position) and `gate.toml` (how far logits may be off, and why).
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use coli_app::engine::{self, Engine, Input, OpenRequest};
use coli_chain::vulkan::VulkanDevice;
use coli_chain::{ConvId, Row, Step};
use coli_config::{Baked, Environment};
use coli_place::precision::PrecisionRequest;
use coli_plugin_api::describe::SegmentName;
use coli_plugin_api::program::ports;
use coli_shaders::contract::Sampling;
use coli_test_common::{assembled, built, drivers, fixture};
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
    /// The folder beside this one whose reference it is; its own where there is none.
    #[serde(default)]
    pub reference: Option<String>,
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
    /// The model: a folder, or a GGUF file.
    pub model: PathBuf,
    /// The folder with its reference.
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
        let name = format!("{plugin}/{}", folder.file_name().unwrap().to_string_lossy());
        let own = folder;
        let folder = gate.reference.as_ref().map_or(own.clone(), |reference| own.with_file_name(reference));
        let model = assembled::gguf(&own, &folder).unwrap_or(own);
        let reference = fixture::json(&folder.join("reference.json"));
        let (prompt, greedy) = (fixture::ids(&reference["prompt"]), fixture::ids(&reference["greedy"]));
        Self { name, plugin: plugin.into(), model, folder, gate, prompt, greedy }
    }

    /// Prompt and continuation: the tokens whose logits the reference has.
    pub fn ids(&self) -> Vec<u32> {
        [&self.prompt[..], &self.greedy[..]].concat()
    }

    /// The case's model with its draft heads, opened through its plugin's library.
    pub fn open(&self) -> Engine {
        self.open_cut(&[])
    }

    /// The same in stages, each with an executor and states of its own, which begin at these segments.
    pub fn open_cut(&self, cuts: &[usize]) -> Engine {
        let engine = open_as(&self.model, OpenRequest { drafts: true, cuts: cuts.into(), ..exact() });
        assert_eq!(engine.facts().plugin, self.plugin, "{}: another plugin served the model", self.name);
        engine
    }
}

/// Runs a check on every case and reports every failure.
pub fn for_every_case(mut check: impl FnMut(&Case) -> Result<(), String>) {
    let faults: Vec<String> = cases().iter().filter_map(|case| check(case).err().map(|fault| format!("{}: {fault}", case.name))).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
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
    open_as(folder, exact())
}

/// The same with the model's draft heads.
pub fn open_with_drafts(model: &Path) -> Engine {
    open_as(model, OpenRequest { drafts: true, ..exact() })
}

/// Opens a model in fast mode, on so many threads.
pub fn open_fast(model: &Path, threads: u32) -> Engine {
    open_as(model, OpenRequest { precision: PrecisionRequest::Fast, threads: Some(threads), ..OpenRequest::default() })
}

fn exact() -> OpenRequest {
    OpenRequest { precision: PrecisionRequest::Exact, ..OpenRequest::default() }
}

/// The device of this program, with the pipelines that models have had made.
static SHARED: OnceLock<Arc<OnceLock<Arc<VulkanDevice>>>> = OnceLock::new();

fn open_as(folder: &Path, mut request: OpenRequest) -> Engine {
    let device = drivers::chosen();
    if let Some(device) = &device {
        request.device = device.parse().unwrap();
        // Small blocks, since every model takes memory anew.
        request.vulkan.limit = Some(1 << 30);
        request.vulkan.staged = drivers::staged();
        request.vulkan.shared = Some(SHARED.get_or_init(Arc::default).clone());
        request.vulkan.cache = Some(std::env::temp_dir().join("coli-test-pipelines"));
    }
    let home = built::program().parent().unwrap().to_path_buf();
    let values = [("COLI_HOME", home.as_os_str()), ("COLI_PLUGIN_PATH", built::plugins().as_os_str())].map(|(k, v)| (k.into(), v.into()));
    let environment = Environment::from_values(values, Baked::default()).unwrap();
    let plugins = engine::discover_plugins(None, &environment).unwrap();
    let opened = engine::prepare(folder, &plugins, &request).and_then(|prepared| prepared.load(&mut |_, _| Ok(())));
    let mut engine = opened.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    if device.is_some() {
        let notes = engine.notes().join("; ");
        assert!(engine.relay().on_device().all(|stage| stage.is_some()), "{}: not all of it runs on the device: {notes}", folder.display());
    }
    engine
}

/// What a model gave for rows whose outputs were wanted: scores, row after row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outputs {
    /// The head's.
    pub logits: Vec<f32>,
    /// The draft head's, where there is one.
    pub drafts: Vec<f32>,
}

impl Outputs {
    /// Adds those of later rows.
    pub fn extend(&mut self, later: Outputs) {
        self.logits.extend(later.logits);
        self.drafts.extend(later.drafts);
    }

    /// Keeps those of the first `rows` of `of` rows.
    pub fn truncate(&mut self, rows: usize, of: usize) {
        for list in [&mut self.logits, &mut self.drafts] {
            list.truncate(list.len() / of * rows);
        }
    }

    /// The bits of all numbers.
    pub fn bits(&self) -> Vec<u32> {
        self.logits.iter().chain(&self.drafts).map(|number| number.to_bits()).collect()
    }
}

/// Appends ids to a conversation in pieces of `piece` tokens and gives the logits of all of them.
pub fn logits(engine: &mut Engine, conv: ConvId, ids: &[u32], piece: usize) -> Vec<f32> {
    let mut all = vec![];
    for chunk in ids.chunks(piece) {
        let start = engine.len(conv);
        let row = |(index, id): (usize, &u32)| Row::text(conv, start + index as u32, *id, Some(Sampling::GREEDY));
        all.extend(step(engine, chunk.iter().enumerate().map(row).collect()).remove(&conv).unwrap().logits);
    }
    all
}

/// Appends what a conversation lacks of `ids`, in pieces of `piece` tokens, and gives the outputs of these.
pub fn append(engine: &mut Engine, conv: ConvId, ids: &[u32], piece: usize) -> Outputs {
    let mut all = Outputs::default();
    while (engine.len(conv) as usize) < ids.len() {
        let rows = next_rows(engine, conv, ids, piece);
        all.extend(step(engine, rows).remove(&conv).unwrap());
    }
    all
}

/// The next `count` rows of a conversation whose tokens are `ids`, with all outputs wanted. The token after each is given, but that after
/// the last one.
pub fn next_rows(engine: &Engine, conv: ConvId, ids: &[u32], count: usize) -> Vec<Row> {
    let start = engine.len(conv) as usize;
    let end = start.saturating_add(count).min(ids.len());
    let row = |at: usize| Row { next: ids.get(at + 1).copied(), ..Row::text(conv, at as u32, ids[at], Some(Sampling::GREEDY)) };
    (start..end).map(row).collect()
}

/// Runs a step and gives the outputs of each conversation's rows.
pub fn step(engine: &mut Engine, rows: Vec<Row>) -> BTreeMap<ConvId, Outputs> {
    try_step(engine, rows).unwrap()
}

/// The same where it may fail.
pub fn try_step(engine: &mut Engine, rows: Vec<Row>) -> coli_base::Result<BTreeMap<ConvId, Outputs>> {
    try_run(engine, &Step::prompt(rows))
}

/// The same with rows of any class.
pub fn try_run(engine: &mut Engine, step: &Step) -> coli_base::Result<BTreeMap<ConvId, Outputs>> {
    let mut outputs: BTreeMap<ConvId, Outputs> = BTreeMap::new();
    engine.step(step, |ports| {
        for name in [ports::LOGITS, ports::DRAFT_LOGITS] {
            let Some((columns, rows)) = ports.get(name) else { continue };
            for row in 0..rows {
                let of = outputs.entry(ConvId(ports.outs[row].conv)).or_default();
                let list = if name == ports::LOGITS { &mut of.logits } else { &mut of.drafts };
                list.extend_from_slice(columns.row(row));
            }
        }
        Ok(())
    })?;
    Ok(outputs)
}

/// The rows of the residual stream after each segment that gives one: `hidden.0`, `hidden.1`, ... but for the last layer's.
pub fn hidden(engine: &mut Engine, ids: &[u32]) -> BTreeMap<u32, Vec<f32>> {
    engine.relay().set_stops(true);
    let conv = engine.open_conversation();
    let rows = next_rows(engine, conv, ids, usize::MAX);
    let mut hidden: BTreeMap<u32, Vec<f32>> = BTreeMap::new();
    let observed = engine.step(&Step::prompt(rows), |ports| {
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
    engine.relay().set_stops(false);
    hidden
}

/// The greedy continuation of a prompt.
pub fn greedy(engine: &mut Engine, prompt: &[u32], count: usize) -> Vec<u32> {
    let conv = engine.open_conversation();
    let mut next = engine.append(conv, Input::Prompt(prompt), Sampling::GREEDY, || Ok(())).unwrap();
    let mut tokens = vec![next];
    while tokens.len() < count {
        next = engine.append(conv, Input::Next(&next), Sampling::GREEDY, || Ok(())).unwrap();
        tokens.push(next);
    }
    engine.close_conversation(conv);
    tokens
}
