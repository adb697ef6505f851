//! Opens a model: folder or file, plugin, description, recordings, program and plan ([`prepare`]), then weights and executor
//! ([`Prepared::load`]). All that can be refused is refused before a weight is read.

use std::path::Path;
use std::sync::Arc;

use coli_base::crew::Crew;
use coli_base::{Error, Result};
use coli_chain::state::PAGE_POSITIONS;
use coli_chain::{Cutting, IdSource, Program, Relay};
use coli_place::device::DeviceRequest;
use coli_place::precision::{Precision, PrecisionFacts, PrecisionRequest};
use coli_place::{context, device, memory, precision, prompt, threads};
use coli_plugin_api::describe::{Container, DescribeRequest, Description, SegmentName};
use coli_plugins::{ModelKind, PluginModel, Plugins, Selection};
use coli_shaders::contract::WeightStore;
use coli_shaders::fast::Level;
use coli_store::{Checkpoint, Plan, Progress};

use crate::patience::while_waiting_for;

use super::vulkan::{self, Found, VulkanPlaces};
use super::{Engine, Facts, OUTS_MAX, own_ops, text};

/// What decides how a model runs.
#[derive(Debug, Clone, Default)]
pub struct OpenRequest {
    /// `--device`.
    pub device: DeviceRequest,
    /// `--precision`.
    pub precision: PrecisionRequest,
    /// `--ctx`.
    pub context: Option<u32>,
    /// `--threads`.
    pub threads: Option<u32>,
    /// Whether the model's draft heads run too, where it has any.
    pub drafts: bool,
    /// Segments at which a new stage begins, with an executor and states of its own.
    pub cuts: Vec<usize>,
    /// Where Vulkan's loader and kernels may be.
    pub vulkan: VulkanPlaces,
}

/// A model whose every check has passed and whose weights have not been read: what a command asks of it can still be refused cheaply.
pub struct Prepared {
    facts: Facts,
    program: Program,
    cuts: Vec<usize>,
    model: PluginModel,
    checkpoint: Checkpoint,
    notes: Vec<String>,
    details: Vec<String>,
    /// The device that was found, where one is to be used.
    found: Option<Found>,
    /// Bytes that a run takes on a device, beside weights.
    device_fixed: u64,
    /// Whether a person named the device.
    named_device: bool,
}

/// A model that its plugin has described.
pub struct Described<'a> {
    /// The stored model.
    pub checkpoint: Checkpoint,
    /// The plugin for it.
    pub selection: Selection<'a>,
    /// The plugin's object.
    pub model: PluginModel,
    /// Its description of the model.
    pub description: Description,
}

/// Chooses, describes, records and checks, up to the weights.
pub fn prepare(path: &Path, plugins: &Plugins, request: &OpenRequest) -> Result<Prepared> {
    // What was asked for by name fails first: it needs no model.
    let mut found = None;
    let device = device::choose(&request.device, || {
        let (seen, device) = vulkan::look(&request.device, &request.vulkan)?;
        found = device;
        Ok(seen)
    })?;
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = threads::choose(request.threads, processors)?;
    let Described { checkpoint, selection, model, mut description } = describe(path, plugins)?;
    if !request.drafts {
        description.segments.retain(|name| !matches!(name, SegmentName::Draft(_)));
    }
    let manifest = &selection.plugin.manifest;
    let mut ops = own_ops::checked(&model, manifest)?;
    let own_notes = found.as_mut().map(|found| found.try_own_ops(&model, manifest, &mut ops)).transpose()?.unwrap_or_default();
    let within = |error: Error| error.within(format!("plugin {}", manifest.id));
    let recordings = record_all(&model, &description)?;
    let program = Program::build(&description, &recordings, &ops.table, &[]).map_err(within)?;
    program.check_language_model().map_err(within)?;

    let context = context::choose(request.context, description.context_max)?;
    let prompt_rows = prompt::chunk_rows(context.value).value as usize;
    let plan = plan(&checkpoint, &program)?;
    let precision = precision::choose(request.precision, PrecisionFacts { quantized: plan.formats().any(|f| f.panel().is_some()) });
    let conversation = Relay::conversation_bytes(&program, precision.value == Precision::Fast, PAGE_POSITIONS, context.value).0;
    let fast = if precision.value == Precision::Fast { program.fast_bytes(prompt_rows).0 } else { 0 };
    let scratch = program.scratch_bytes(prompt_rows, OUTS_MAX).0.saturating_add(fast);
    let own_weights = own_ops::weight_bytes(manifest, &description, &recordings);
    let device_fixed = scratch.saturating_add(conversation);
    let facts = Facts {
        plugin: manifest.id.clone(),
        plugin_version: manifest.version.clone(),
        device: device.value.to_string(),
        device_reason: device.reason,
        precision: precision.value.to_string(),
        precision_reason: precision.reason,
        fast: (precision.value == Precision::Fast).then(Level::best),
        threads: threads.value,
        context: context.value,
        context_max: description.context_max,
        vocab: description.vocab,
        prompt_rows,
        weight_bytes: plan.bytes(),
        planned_bytes: [own_weights, scratch, conversation].into_iter().fold(plan.bytes(), u64::saturating_add),
    };
    memory::check(facts.planned_bytes, coli_base::memory::available_bytes())?;
    let notes = selection.note.into_iter().chain(plan.unused_note()).chain(own_notes).collect();
    drop(plan);
    let cuts = request.cuts.clone();
    let named_device = request.device != DeviceRequest::Auto;
    Ok(Prepared { facts, program, cuts, model, notes, details: ops.details, checkpoint, found, device_fixed, named_device })
}

/// The weights that the program's ops use: those of a draft head that does not run are not read.
fn plan<'a>(checkpoint: &'a Checkpoint, program: &Program) -> Result<Plan<'a>> {
    let (weights, groups) = program.uses();
    Plan::of(checkpoint, program.description(), |id| weights.contains(&id), |id| groups.contains(&id))
}

/// Chooses the plugin for a stored model and has it describe the model.
pub fn describe<'a>(path: &Path, plugins: &'a Plugins) -> Result<Described<'a>> {
    let checkpoint = coli_store::open(path)?;
    let selection = plugins.select(model_kind(&checkpoint)?)?;
    let manifest = &selection.plugin.manifest;
    let needed = |error: Error| error.within(format_args!("plugin {} needs the texts of the model's tokens", manifest.id));
    let texts = manifest.needs_tokenizer.then(|| text::tokenizer(&checkpoint).and_then(|tokenizer| tokenizer.texts()).map_err(needed));
    let model = PluginModel::new(&plugins.load(selection.plugin)?)?;
    let (container, config, tensors) = (checkpoint.container(), checkpoint.config().clone(), checkpoint.facts());
    let facts = DescribeRequest { container, config, tensors, tokenizer: texts.transpose()? };
    let description = while_waiting_for(&format!("plugin {} to describe the model", manifest.id), || model.describe(&facts))?;
    Ok(Described { checkpoint, selection, model, description })
}

/// By what a plugin is chosen for a stored model.
pub fn model_kind(checkpoint: &Checkpoint) -> Result<ModelKind<'_>> {
    let name = checkpoint.model_type()?;
    Ok(match checkpoint.container() {
        Container::Hf => ModelKind::ModelType(name),
        Container::Gguf => ModelKind::GgufArchitecture(name),
    })
}

impl Prepared {
    /// What was chosen.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The stored model.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Lines for the log: what was chosen among several, and what is stored but not used.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Lines for whoever wants to know more: what was tried of the plugin's own ops.
    pub fn details(&self) -> &[String] {
        &self.details
    }

    /// Reads the weights.
    pub fn load(self, progress: Progress<'_>) -> Result<Engine> {
        let weights: Arc<dyn WeightStore> = Arc::new(plan(&self.checkpoint, &self.program)?.load(progress)?);
        let on_cpu = Cutting {
            cuts: self.cuts,
            device: None,
            tokens_max: self.facts.prompt_rows,
            outs_max: OUTS_MAX,
            page_positions: PAGE_POSITIONS,
            context: self.facts.context,
            ids: Some(Arc::new(PluginIds(self.model))),
            crew: Arc::new(Crew::new(self.facts.threads)?),
            fast: self.facts.fast,
        };
        let (program, facts) = (Arc::new(self.program), self.facts);
        let Some(found) = self.found else {
            let relay = Relay::new(program, &weights, &on_cpu)?;
            return Ok(Engine { facts, relay, notes: vec![] });
        };
        match on_device(&found, &program, &weights, &on_cpu, self.device_fixed) {
            Ok((relay, notes)) => Ok(Engine { facts, relay, notes }),
            Err(error) if self.named_device => Err(error),
            // Nobody asked for the device, so what it lacks makes the run slower and no more.
            Err(error) => {
                let notes = vec![format!("{} is not used: {}", facts.device, error.text)];
                let facts = Facts { device: "cpu".into(), device_reason: error.text, ..facts };
                Ok(Engine { facts, relay: Relay::new(program, &weights, &on_cpu)?, notes })
            }
        }
    }
}

/// The executors of a model of which a device runs as much as it can.
fn on_device(
    found: &Found,
    program: &Arc<Program>,
    weights: &Arc<dyn WeightStore>,
    on_cpu: &Cutting,
    fixed: u64,
) -> Result<(Relay, Vec<String>)> {
    let placed = found.place(program, weights, on_cpu.fast.is_some(), fixed, &on_cpu.cuts)?;
    let cutting = Cutting { cuts: placed.cuts, device: Some(placed.device), ..on_cpu.clone() };
    Ok((Relay::new(program.clone(), weights, &cutting)?, placed.notes))
}

/// A plugin's `ids` function, as executors ask it.
struct PluginIds(PluginModel);

impl IdSource for PluginIds {
    fn ids(&self, input: &str, window: &[u32]) -> Result<Vec<i64>> {
        self.0.ids(input, window)
    }
}

/// The bytes of every segment of a description, which is checked first: a plugin is not asked for more segments than a model may have.
pub fn record_all(model: &PluginModel, description: &Description) -> Result<Vec<(SegmentName, Vec<u8>)>> {
    Program::check_description(description).map_err(|error| error.within(format!("plugin {}", model.id())))?;
    description.segments.iter().map(|name| Ok((*name, model.record(*name)?))).collect()
}
