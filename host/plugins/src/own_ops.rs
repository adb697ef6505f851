//! Ops that a plugin brings, as ops of the host: facts go over as JSON once, rows of a step as slices, and nothing that comes back is
//! believed.
//!
//! An op's error, or a panic in it, is a line that names the plugin; the executor adds segment, op and its place.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use abi_stable::sabi_trait::TD_Opaque;
use abi_stable::std_types::{RNone, ROption, RSlice, RSliceMut, RSome};
use coli_base::{Error, Result};
use coli_plugin_api::abi::{OwnRow, PluginBox, RawCall, RawInput, RawOutput, RawState, RawState_TO, RawWeight};
use coli_plugin_api::own_op::OwnCase;
use coli_plugin_api::program::Access;
use coli_shaders::contract::{Case, CpuCall, Kernel, OpFacts, Prepare, StateAccess, own_facts};

use crate::load::Library;
use crate::manifest::Manifest;
use crate::model::{PluginModel, WORDS_MAX};
use crate::own_devices::{Form, OpDevice, OwnDevices};
use crate::text::one_line;

/// Cases are tiny.
const CASES_BYTES_MAX: usize = 16 << 20;

/// Checks that a library has the ops that its manifest names as its own.
pub(crate) fn check_offered(library: &Library, manifest: &Manifest) -> std::result::Result<(), String> {
    if manifest.own_ops.is_empty() {
        return Ok(());
    }
    let object = PluginModel::new(library).map_err(|error| format!("does not start: {}", error.text))?;
    match manifest.own_ops.iter().find_map(|op| Some((op, object.cases_text(op).err()?))) {
        None => Ok(()),
        Some((op, words)) => Err(format!("does not offer op {op}, which its manifest names in `own_ops`: {words}")),
    }
}

impl PluginModel {
    /// One of the plugin's own ops, for the table of a program's ops.
    pub fn own_op(&self, op: &str) -> Prepare {
        let (plugin, object, op) = (self.id().to_string(), self.object().clone(), op.to_string());
        let (ask, devices) = (self.op_device(), self.own_devices().clone());
        Box::new(move |facts| prepare(&plugin, &object, &op, (ask, &devices), facts))
    }

    /// The cases that the plugin ships with an op.
    pub fn own_cases(&self, op: &str) -> Result<Vec<Case>> {
        let refused = |why: &str| Error::refused(format!("plugin {}: the cases of its op {op}: {}", self.id(), one_line(why, WORDS_MAX)));
        let text = self.cases_text(op).map_err(|why| refused(&why))?;
        if text.len() > CASES_BYTES_MAX {
            return Err(refused(&format!("{} bytes, and at most {CASES_BYTES_MAX} are taken", text.len())));
        }
        let cases: Vec<OwnCase> = serde_json::from_str(&text).map_err(|error| refused(&error.to_string()))?;
        cases.into_iter().map(|case| Case::from_own(case).map_err(|why| refused(&why))).collect()
    }

    fn cases_text(&self, op: &str) -> std::result::Result<String, String> {
        let reply = self.object().op_cases(op.into()).into_result();
        reply.map(Into::into).map_err(|words| one_line(&words, WORDS_MAX))
    }
}

fn prepare(
    plugin: &str,
    object: &Arc<PluginBox>,
    op: &str,
    (ask, devices): (Option<OpDevice>, &Arc<OwnDevices>),
    facts: &OpFacts<'_>,
) -> std::result::Result<Kernel, String> {
    let json = serde_json::to_string(&own_facts(facts)?).map_err(|error| format!("its facts: {error}"))?;
    let number = object.op_prepare(op.into(), json.as_str().into()).into_result().map_err(|words| one_line(&words, WORDS_MAX))?;
    let writes = facts.states.first().is_some_and(|(_, access)| *access != Access::Read);
    let states = facts.states.len();
    let own = OwnKernel { plugin: plugin.into(), object: object.clone(), number, states, writes, weights: OnceLock::new() };
    let params = facts.params.to_vec();
    let form = Form { op: op.into(), params, facts: json, ask, devices: devices.clone(), said: OnceLock::new() };
    Ok(Kernel::of_plugin(Box::new(move |call| own.run(call)), Box::new(move |call| form.plan(call))))
}

/// A weight as numbers.
struct Numbers {
    numbers: Vec<f32>,
    rows: usize,
    cols: usize,
}

/// One use of an own op.
struct OwnKernel {
    plugin: String,
    object: Arc<PluginBox>,
    number: u64,
    states: usize,
    writes: bool,
    /// Decoded by the first run: a program has one store of weights.
    weights: OnceLock<Vec<Numbers>>,
}

impl OwnKernel {
    fn run(&self, call: &mut CpuCall<'_>) -> std::result::Result<(), String> {
        let len = call.rows.len();
        let rows: Vec<OwnRow> = call.rows.iter().map(|row| OwnRow { conv: row.conv, pos: row.pos, step_row: row.step_row }).collect();
        let weights = self.weights.get_or_init(|| decode(call));
        let ins = call.ins.iter().map(|columns| {
            let (words, stride, col0, ncols) = columns.parts(len);
            RawInput { words: words.into(), stride, col0, ncols }
        });
        let outs = call.outs.iter_mut().map(|columns| {
            let width = columns.width();
            RawOutput { words: columns.words(len).into(), width }
        });
        let weights = weights.iter().map(|weight| {
            let numbers = weight.numbers.as_slice().into();
            RawWeight { numbers, rows: weight.rows, cols: weight.cols }
        });
        let mut state = OneState { states: &mut *call.states, readable: self.states > 0, writable: self.writes };
        let reply = self.object.op_run(
            self.number,
            RawCall {
                rows: rows.as_slice().into(),
                ins: ins.collect(),
                outs: outs.collect(),
                weights: weights.collect(),
                state: RawState_TO::from_ptr(&mut state, TD_Opaque),
            },
        );
        reply.into_result().map_err(|words| format!("plugin {}: {}", self.plugin, one_line(&words, WORDS_MAX)))
    }
}

fn decode(call: &CpuCall<'_>) -> Vec<Numbers> {
    let weights = (0..call.weights.len()).map(|index| call.weight(index));
    weights.map(|weight| Numbers { numbers: weight.decode(), rows: weight.rows(), cols: weight.cols() }).collect()
}

/// The op's state, as the plugin reaches it.
struct OneState<'a> {
    states: &'a mut dyn StateAccess,
    readable: bool,
    writable: bool,
}

impl RawState for OneState<'_> {
    fn row(&self, conv: u32, index: u32) -> ROption<RSlice<'_, f32>> {
        if !self.readable {
            return RNone;
        }
        quietly(|| self.states.row(0, conv, index)).map_or(RNone, |row| RSome(row.into()))
    }

    fn row_mut(&mut self, conv: u32, index: u32) -> ROption<RSliceMut<'_, f32>> {
        if !self.writable {
            return RNone;
        }
        let states = &mut *self.states;
        quietly(move || states.row_mut(0, conv, index)).map_or(RNone, |row| RSome(row.into()))
    }

    fn accumulator(&mut self, conv: u32, pos: u32) -> ROption<RSliceMut<'_, f32>> {
        if !self.writable {
            return RNone;
        }
        let states = &mut *self.states;
        quietly(move || states.accumulator(0, conv, pos)).map_or(RNone, |value| RSome(value.into()))
    }
}

/// A panic must not reach the plugin's frames, which would end the process.
fn quietly<T>(find: impl FnOnce() -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(find)).unwrap_or(None)
}

#[cfg(test)]
#[path = "own_ops_tests.rs"]
mod tests;
