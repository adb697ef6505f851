//! A plugin's own ops: their cases are run before the ops are used, and a plugin whose op fails one is refused.

use coli_base::{Error, Result};
use coli_chain::case;
use coli_chain::program::OpTable;
use coli_plugin_api::codec;
use coli_plugin_api::describe::{Description, SegmentName};
use coli_plugins::{Manifest, PluginModel};

/// The ops that a model's segments may use.
pub(super) struct Ops {
    /// The library's, and the plugin's own.
    pub table: OpTable,
    /// What was tried, for whoever wants to know more.
    pub details: Vec<String>,
}

/// The op library with the plugin's own ops, each of which has passed its cases.
pub(super) fn checked(model: &PluginModel, manifest: &Manifest) -> Result<Ops> {
    let mut table = OpTable::library();
    for op in &manifest.own_ops {
        // The library's names have no vendor, and a manifest names an op once.
        assert!(table.add(op, model.own_op(op)), "{op} is new");
    }
    let mut details = Vec::with_capacity(manifest.own_ops.len());
    for op in &manifest.own_ops {
        let passed = run_cases(model, &table, op)?;
        let cases = if passed == 1 { "case" } else { "cases" };
        details
            .push(format!("plugin {}: its op {op} passed its {passed} {cases}; it brings no SPIR-V, so it runs on the CPU", manifest.id));
    }
    Ok(Ops { table, details })
}

/// Runs the cases that the plugin ships with an op; gives how many.
fn run_cases(model: &PluginModel, table: &OpTable, op: &str) -> Result<usize> {
    let cases = model.own_cases(op)?;
    if cases.is_empty() {
        return Err(Error::refused(format!("plugin {}: its op {op} has no case, so it cannot be tried", model.id())));
    }
    for case in &cases {
        let fails = |why: &str| {
            let name = case.name.escape_debug();
            Error::refused(format!("plugin {}: its op {op} fails its case `{name}`: {why}", model.id()))
        };
        if !case.recording.ops.iter().any(|record| record.name == op) {
            return Err(fails("the case does not record the op"));
        }
        case::check(case, table).map_err(|error| fails(&error.text))?;
    }
    Ok(cases.len())
}

/// Bytes of the weights of own ops, which are kept as f32 beside the stored ones. The recordings have been checked.
pub(super) fn weight_bytes(manifest: &Manifest, description: &Description, recordings: &[(SegmentName, Vec<u8>)]) -> u64 {
    if manifest.own_ops.is_empty() {
        return 0;
    }
    let recordings = recordings.iter().filter_map(|(_, bytes)| codec::decode(bytes).ok());
    let ops = recordings.flat_map(|recording| recording.ops).filter(|op| manifest.own_ops.contains(&op.name));
    let weights = ops.flat_map(|op| op.weights).filter_map(|id| description.weights.get(id.0 as usize));
    let bytes = weights.map(|weight| weight.shape.iter().fold(4u64, |bytes, len| bytes.saturating_mul((*len).into())));
    bytes.fold(0, u64::saturating_add)
}
