//! `moe@1`: the weighted sum of the chosen experts.
//!
//! `y = sum over rank k, in order, of w_k * Down_e(glu(Gate_e x, Up_e x))` with `e = ids_k`. Each rank's row is computed by itself and one
//! pass adds them by rank, wherever each was computed.
//!
//! Operands: x `[T, width]`, ids `[T, k]` i32, w `[T, k]`. Groups: one. Outputs: y `[T, width]`.

mod cases;
mod cpu;
mod cpu_fast;
mod plan;

use coli_plugin_api::params;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{GroupId, Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};

use super::glu::GluParams;
use crate::contract::{Case, CpuCall, Fast, Op, OpFacts, facts};
use crate::device::{KernelText, Plan, PlanCall};

params! {
    /// Parameters of `moe@1`.
    pub struct MoeParams {
        /// The layer within the group.
        layer: u32,
    }
}

/// Records `y = sum of w * expert(x)` over the experts of a layer of a group.
pub fn record(r: &mut Recorder, x: Operand, ids: Operand, weights: Operand, group: GroupId, layer: u32) -> Operand {
    let [y] = r.op(OpCall {
        name: "moe@1",
        ins: &[x, ids, weights],
        outs: &[ValueDef { domain: x.domain, ty: Ty::F32, width: x.width() }],
        groups: &[group],
        params: MoeParams { layer }.encode(),
        ..OpCall::default()
    });
    y
}

/// The prepared op.
pub struct Moe {
    layer: u32,
    hidden: usize,
    act: GluParams,
}

impl Op for Moe {
    const NAME: &'static str = "moe";
    const VERSION: u16 = 1;
    const ROWS_APART: bool = true;
    type Params = MoeParams;

    fn prepare(params: MoeParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        facts.counts(3..=3, 1, 0..=0, 0, 1)?;
        facts.one_domain()?;
        let group = facts.groups[0];
        if group.weight_before_down {
            return facts::not_implemented("weights before the last matrix");
        }
        let act = GluParams::of(group.activation);
        act.check()?;
        if params.layer as usize >= group.layers.len() {
            return Err(format!("parameter `layer`: {} of {} in the group", params.layer, group.layers.len()));
        }
        facts::expect("input 0: width", u64::from(facts.input(0, Ty::F32)?.width), u64::from(group.width))?;
        let k = u64::from(facts.input(1, Ty::I32)?.width);
        if k > u64::from(group.count) {
            return Err(format!("input 1: {k} ids a row of {} experts", group.count));
        }
        facts::expect("input 2: width", u64::from(facts.input(2, Ty::F32)?.width), k)?;
        facts.output(0, Ty::F32, u64::from(group.width))?;
        Ok(Self { layer: params.layer, hidden: group.hidden as usize, act })
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        cpu::run(self, call)
    }

    fn fast(&self, call: &mut CpuCall<'_>, fast: &Fast<'_>) -> Result<(), String> {
        cpu_fast::run(self, call, fast)
    }

    fn plan(&self, call: &PlanCall<'_>) -> Result<Plan, String> {
        plan::plan(self, call)
    }

    fn kernels() -> &'static [KernelText] {
        plan::KERNELS
    }

    fn cases() -> Vec<Case> {
        cases::all()
    }
}
