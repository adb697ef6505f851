//! Any bytes as `config.json`: described, recorded and built by the OLMoE plugin, or refused.
#![no_main]

use std::sync::LazyLock;

use coli_chain::program::OpTable;
use coli_fuzz::{build, record};
use coli_plugin_api::describe::Description;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

static OPS: LazyLock<OpTable> = LazyLock::new(OpTable::library);

/// Layers that every input may have.
const LAYERS: u64 = 16;
/// One in so many inputs may have as many layers as it likes: 4000 take a second with coverage.
const DEEP: u32 = 256;

fuzz_target!(|bytes: &[u8]| {
    let Ok(config) = serde_json::from_slice::<Value>(bytes) else { return };
    let layers = config.get("num_hidden_layers").and_then(Value::as_u64).unwrap_or(0);
    if layers > LAYERS && !sum(bytes).is_multiple_of(DEEP) {
        return;
    }
    let Ok(model) = record(config) else { return };
    assert!(build(&model.description, &model.recordings, &OPS), "the plugin took what the host refuses");
    let text = serde_json::to_string(&model.description).expect("a description is JSON");
    let again: Description = serde_json::from_str(&text).expect("a description survives the border");
    assert_eq!(again, model.description);
});

/// FNV-1a, so that the same input is always treated the same.
fn sum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
