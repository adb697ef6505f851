//! What the fuzz targets share: a bound on memory, and the OLMoE plugin called as the host calls it, but without the guard that would
//! turn its panics into errors.

use std::alloc::System;

use cap::Cap;
use coli_chain::program::OpTable;
use coli_chain::state::PAGE_POSITIONS;
use coli_chain::{Program, States};
use coli_olmoe::Olmoe;
use coli_plugin_api::abi::LogFn;
use coli_plugin_api::abi_stable::std_types::RStr;
use coli_plugin_api::describe::{Container, DescribeRequest, Description, SegmentName};
use coli_plugin_api::recorder::Recorder;
use coli_plugin_api::{Log, Plugin, codec};
use serde_json::Value;

/// The most memory that Rust code may hold at once, touched or not: an allocation beyond it aborts, which libFuzzer reports as a crash.
/// The largest model that the OLMoE plugin describes, 4000 layers, takes less than half of it.
const MEMORY_MAX: usize = 256 << 20;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, MEMORY_MAX);

/// The demo model's folder.
pub const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/olmoe/demo");

/// A described model and the bytes of its segments.
pub struct Recorded {
    /// What the plugin described.
    pub description: Description,
    /// Its segments, in order.
    pub recordings: Vec<(SegmentName, Vec<u8>)>,
}

/// The demo model with its first layer only: its segments differ by a number, so more of them would slow down and find nothing more.
pub fn demo() -> Recorded {
    let text = include_str!("../../../models/olmoe/demo/config.json");
    let mut config: Value = serde_json::from_str(text).expect("the demo's config.json is JSON");
    config["num_hidden_layers"] = 1.into();
    record(config).expect("the demo is served")
}

/// A model of the OLMoE plugin, by its `config.json`.
pub fn record(config: Value) -> Result<Recorded, String> {
    extern "C" fn silent(_: u8, _: RStr<'_>) {}
    let request = DescribeRequest { container: Container::Hf, config, tensors: vec![], tokenizer: None };
    let model = Olmoe::open(&request, Log::new(LogFn { write: silent }))?;
    let description = model.description();
    let recordings = description.segments.iter().map(|name| {
        let mut recorder = Recorder::default();
        model.record(*name, &mut recorder)?;
        Ok((*name, codec::encode(&recorder.finish()?)?))
    });
    let recordings = recordings.collect::<Result<_, String>>()?;
    Ok(Recorded { description, recordings })
}

/// Builds the program and, when it is accepted, asks everything that the host asks of it before it reads weights. Returns whether it was.
pub fn build(description: &Description, recordings: &[(SegmentName, Vec<u8>)], ops: &OpTable) -> bool {
    const ROWS: usize = 256;
    let Ok(program) = Program::build(description, recordings, ops, &[]) else { return false };
    let _ = program.check_language_model();
    let _ = program.scratch_bytes(ROWS, ROWS);
    let _ = States::new(description, PAGE_POSITIONS, description.context_max).conversation_bytes(description.context_max);
    assert!(program.ops().all(|(name, id)| ops.has(id) && description.segments.binary_search(&name).is_ok()));
    true
}
