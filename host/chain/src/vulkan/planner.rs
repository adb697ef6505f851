//! From linked ops to plans: what an op's planner is told.

use std::collections::HashMap;

use coli_base::{Error, Result};
use coli_plugin_api::program::StateId;
use coli_shaders::contract::RowClass;
use coli_shaders::device::{DeviceShape, Operand, Plan, PlanCall, StateForm};

use super::device::{PUSH_MAX, VulkanDevice};
use super::weights::DeviceWeights;
use super::words::Caps;
use crate::program::{LinkedOp, Place, Program, Rows};
use crate::state::States;

/// What plans of one executor have in common.
pub(super) struct Planner<'a> {
    pub program: &'a Program,
    pub shape: &'a DeviceShape,
    pub weights: &'a DeviceWeights,
    pub states: &'a HashMap<StateId, StateForm>,
    pub context: u32,
    pub fast: bool,
}

impl Planner<'_> {
    /// The plan of an op, for rows of a class and caps.
    pub fn plan(&self, op: &LinkedOp, class: RowClass, caps: Caps) -> std::result::Result<Plan, String> {
        let ins: Vec<Operand> = op.ins.iter().map(|operand| Operand { width: operand.ncols as u32 }).collect();
        let outs: Vec<Operand> = op.outs.iter().map(|(_, width)| Operand { width: *width as u32 }).collect();
        let weights = op.weights.iter().map(|id| self.weights.shape(*id).map_err(|error| error.text));
        let state = |id: &StateId| self.states.get(id).copied().ok_or_else(|| format!("state {} is on another executor", id.0));
        let plan = op.kernel.plan(&PlanCall {
            // Wanted rows are few, whatever the step is for.
            class: if op.rows == Rows::Outs { RowClass::Step } else { class },
            cap: caps.of(op.rows),
            context: self.context,
            fast: self.fast,
            device: self.shape,
            ins: &ins,
            outs: &outs,
            weights: &weights.collect::<std::result::Result<Vec<_>, _>>()?,
            states: &op.states.iter().map(state).collect::<std::result::Result<Vec<_>, _>>()?,
            groups: &op.groups,
            facts: self.weights,
        })?;
        self.check(op, &plan)?;
        Ok(plan)
    }

    /// What every plan must hold to.
    fn check(&self, op: &LinkedOp, plan: &Plan) -> std::result::Result<(), String> {
        for dispatch in &plan.dispatches {
            let bytes = super::frame::push_bytes(dispatch);
            if bytes > PUSH_MAX {
                return Err(format!("its kernel {} takes {bytes} bytes of push constants, {PUSH_MAX} are there", dispatch.kernel.name));
            }
            let invocations = dispatch.constants.first().copied().unwrap_or(0);
            if invocations == 0 || invocations > self.shape.invocations {
                return Err(format!(
                    "its kernel {} runs {invocations} invocations, the device {}",
                    dispatch.kernel.name, self.shape.invocations
                ));
            }
        }
        for table in &plan.tables {
            if !matches!(op.ins.get(table.input).map(|operand| operand.place), Some(Place::Input(_))) {
                return Err(format!("its operand {} is computed, and a device needs a row input there", table.input));
            }
        }
        Ok(())
    }
}

/// For each of the program's segments, why a device cannot run it; `None` where it can.
pub fn refusals(program: &Program, device: &VulkanDevice, weights: &DeviceWeights, fast: bool) -> Vec<Option<String>> {
    let forms: HashMap<StateId, StateForm> = forms(program);
    let planner = Planner { program, shape: device.shape(), weights, states: &forms, context: program.description().context_max, fast };
    let caps = Caps { tokens: 1, outs: 1 };
    let refusal = |op: &LinkedOp| {
        let refused = |class| planner.plan(op, class, caps).err().map(|why| format!("{} {why}", op.id));
        refused(RowClass::Step).or_else(|| refused(RowClass::Prompt))
    };
    program.segments.iter().map(|segment| segment.ops.iter().find_map(refusal)).collect()
}

/// The states' forms as far as a plan's existence depends on them.
fn forms(program: &Program) -> HashMap<StateId, StateForm> {
    let states = States::new(program.description(), crate::state::PAGE_POSITIONS, 1);
    form_all(program, &states)
}

/// The forms of all states that are here.
pub(super) fn form_all(program: &Program, states: &States) -> HashMap<StateId, StateForm> {
    let ids = (0..program.description().states.len() as u32).map(StateId);
    let form = |id: StateId| {
        let layout = states.layout(id)?;
        Some((id, StateForm { stride: layout.stride, width: layout.width, page_rows: layout.page_rows, half: layout.half }))
    };
    ids.filter_map(form).collect()
}

/// A planning failure as an error.
pub(super) fn failed(segment: impl std::fmt::Display, op: &LinkedOp, why: &str) -> Error {
    Error::unmet(format!("{segment} {}: {why}", op.id))
}

/// Whether so many ops fit a frame.
pub(super) fn check_ops(count: usize) -> Result<()> {
    if count <= super::fault::OPS_MAX { Ok(()) } else { Err(Error::run(format!("a frame of {count} ops"))) }
}
