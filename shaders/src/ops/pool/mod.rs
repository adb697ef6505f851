//! `pool@1`: one row for each group of r positions.
//!
//! Where `(pos + 1) mod r = 0`, a group is complete and y is, column by column, the sum of kv over the group's r rows, weighted by the
//! softmax of `gate + ape` (the row of ape is `pos mod r`), or their mean; everywhere else y is zeros. With overlap a row mixes 2r rows: of
//! the group before, the first half of the columns, and of this group, the second half; the first group has nothing before it. The op
//! stores the row's kv and gate itself, before it reads.
//!
//! Operands: kv `[T, w]`, with mode softmax also gate `[T, w]`; w is the output's width, or twice that with overlap. Weights: none, or ape
//! `[r, w]`. States: rows of one part `[w]` for kv, and one `[w]` for the gate where there is one, stride 1, that keep at least the last
//! `r - 1` positions, `2r - 1` with overlap; appended. Outputs: y `[T, w]` or `[T, w / 2]`.

mod cases;
mod cpu;
mod plan;

use coli_plugin_api::describe::WeightRef;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Access, StateId, Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};
use coli_plugin_api::{choice, params};

use crate::contract::{Case, CpuCall, Op, OpFacts, facts};
use crate::device::{KernelText, Plan, PlanCall};

choice! {
    /// How rows are weighted.
    pub enum PoolMode {
        /// By the softmax of their gates, column by column.
        Softmax = 0, "softmax";
        /// All alike.
        Mean = 1, "mean";
    }
}

params! {
    /// Parameters of `pool@1`.
    pub struct PoolParams {
        /// Positions of a group.
        ratio: u32 = 1..=65_536,
        /// How rows are weighted.
        mode: PoolMode,
        /// Whether the group before takes part.
        overlap: bool,
        /// Whether a weight is added to the gates.
        ape: bool,
    }
}

impl PoolParams {
    /// The mean of each group.
    pub fn mean(ratio: u32) -> Self {
        Self { ratio, mode: PoolMode::Mean, overlap: false, ape: false }
    }

    /// A sum weighted by gates, to which a weight is added.
    pub fn softmax(ratio: u32, overlap: bool) -> Self {
        Self { ratio, mode: PoolMode::Softmax, overlap, ape: true }
    }
}

/// Records the pooling of groups. Whether there is an ape is taken from the weight.
pub fn record(r: &mut Recorder, kv: Operand, gate: Option<Operand>, ape: Option<WeightRef>, state: StateId, params: PoolParams) -> Operand {
    let ins: Vec<Operand> = std::iter::once(kv).chain(gate).collect();
    let weights: Vec<WeightRef> = ape.into_iter().collect();
    let width = if params.overlap { kv.width() / 2 } else { kv.width() };
    let [y] = r.op(OpCall {
        name: "pool@1",
        ins: &ins,
        outs: &[ValueDef { domain: kv.domain, ty: Ty::F32, width }],
        weights: &weights,
        states: &[(state, Access::Append)],
        params: PoolParams { ape: ape.is_some(), ..params }.encode(),
        ..OpCall::default()
    });
    y
}

/// The prepared op.
pub struct Pool {
    params: PoolParams,
}

impl Op for Pool {
    const NAME: &'static str = "pool";
    const VERSION: u16 = 1;
    type Params = PoolParams;

    fn prepare(params: PoolParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        let gated = params.mode == PoolMode::Softmax;
        if !gated && (params.overlap || params.ape) {
            return facts::not_implemented("overlap and ape with mode mean");
        }
        let (inputs, weights) = (1 + usize::from(gated), usize::from(params.ape));
        facts.counts(inputs..=inputs, 1, weights..=weights, 1, 0)?;
        facts.one_domain()?;
        let width = facts.input(0, Ty::F32)?.width;
        if gated {
            facts::expect("input 1: width", u64::from(facts.input(1, Ty::F32)?.width), u64::from(width))?;
        }
        if params.overlap && !width.is_multiple_of(2) {
            return Err(format!("input 0: width is {width}, expected an even number with overlap"));
        }
        facts.output(0, Ty::F32, u64::from(if params.overlap { width / 2 } else { width }))?;
        if params.ape {
            facts.matrix(0, u64::from(params.ratio), u64::from(width))?;
        }
        let groups = if params.overlap { 2 } else { 1 };
        facts.window_state(0, &[width, width][..inputs], groups * u64::from(params.ratio) - 1)?;
        Ok(Self { params })
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        cpu::run(&self.params, call)
    }

    fn plan(&self, call: &PlanCall<'_>) -> Result<Plan, String> {
        plan::plan(&self.params, call)
    }

    fn kernels() -> &'static [KernelText] {
        plan::KERNELS
    }

    fn cases() -> Vec<Case> {
        cases::all()
    }
}

#[cfg(test)]
mod tests;
