//! A plugin's own ops: their cases are run before the ops are used, and a plugin whose op fails one is refused. A device form that fails
//! one is dropped.

use std::sync::Arc;
use std::time::Duration;

use coli_base::{Error, Result};
use coli_chain::case;
use coli_chain::program::OpTable;
use coli_chain::vulkan::{VulkanDevice, try_form};
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
        details.push(format!("plugin {}: its op {op} passed its {passed} {cases} on the CPU", manifest.id));
    }
    Ok(Ops { table, details })
}

/// How long the cases of an op may take on a device, compiling included.
const TRIAL_MAX: Duration = Duration::from_secs(20);

/// Tries the device forms of the plugin's own ops on a device that `open` gives, with [`coli_vk::Options::robust`], and that nothing else
/// uses: a kernel that never ends loses it. Gives what a person should know: which forms were dropped.
pub(super) fn try_devices(
    model: &PluginModel,
    manifest: &Manifest,
    ops: &mut Ops,
    open: &dyn Fn() -> Result<Arc<VulkanDevice>>,
) -> Result<Vec<String>> {
    let (devices, mut notes) = (model.own_devices(), Vec::new());
    if manifest.own_ops.is_empty() || !model.may_bring_devices() {
        return Ok(notes);
    }
    // One op's case may use another op.
    manifest.own_ops.iter().for_each(|op| devices.allow(op));
    let mut device = open()?;
    for op in &manifest.own_ops {
        let line = |what: &str| format!("plugin {}: its op {op} {what}", manifest.id);
        if device.device().is_lost() {
            device = open()?;
        }
        let name = &device.device().facts().name;
        match try_form(&model.own_cases(op)?, &ops.table, &device, TRIAL_MAX) {
            Ok(()) => ops.details.push(line(&format!("passed its cases on {name}"))),
            Err(why) => {
                devices.drop_form(op, &why);
                if devices.brought(op) {
                    notes.push(line(&format!("runs on the CPU: its device form fails on {name}: {why}")));
                } else {
                    ops.details.push(line("brings no SPIR-V, so it runs on the CPU"));
                }
            }
        }
    }
    Ok(notes)
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
