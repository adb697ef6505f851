//! `mhc_split@1`: the weights by which n streams are mixed into one and a result is spread over them (manifold-constrained
//! hyper-connections).
//!
//! With z's first n, next n and last n * n columns:
//! - `pre = sigmoid(z * scale_0 + base) + eps`,
//! - `post = 2 sigmoid(z * scale_1 + base)`,
//! - C, n x n: the softmax of `z * scale_2 + base` over its last index, plus eps; then divided by its columns' sums + eps; then
//!   `iterations - 1` times divided by its rows' sums + eps and by its columns' sums + eps.
//!
//! Operands: z `[T, 2n + n * n]`. Weights: scale `[3]`, base `[2n + n * n]`. Outputs: pre `[T, n]`, post `[T, n]`, C `[T, n * n]`.

mod cases;
mod cpu;
mod plan;
#[cfg(test)]
mod tests;

use coli_plugin_api::describe::WeightRef;
use coli_plugin_api::params;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};

use crate::contract::{Case, CpuCall, Op, OpFacts, facts};
use crate::device::{KernelText, Plan, PlanCall};

params! {
    /// Parameters of `mhc_split@1`.
    pub struct MhcSplitParams {
        /// Streams, n.
        streams: u32 = 1..=64,
        /// Is added to `pre`, to C and to sums that divide.
        eps: f32 = 0.0..=1.0,
        /// Times that columns are divided.
        iterations: u32 = 1..=1000,
    }
}

/// Records the split; gives pre, post and C.
pub fn record(r: &mut Recorder, z: Operand, scale: WeightRef, base: WeightRef, params: MhcSplitParams) -> (Operand, Operand, Operand) {
    let n = params.streams;
    let out = |width| ValueDef { domain: z.domain, ty: Ty::F32, width };
    let [pre, post, comb] = r.op(OpCall {
        name: "mhc_split@1",
        ins: &[z],
        outs: &[out(n), out(n), out(n.saturating_mul(n))],
        weights: &[scale, base],
        params: params.encode(),
        ..OpCall::default()
    });
    (pre, post, comb)
}

/// The prepared op.
pub struct MhcSplit {
    params: MhcSplitParams,
}

impl Op for MhcSplit {
    const NAME: &'static str = "mhc_split";
    const VERSION: u16 = 1;
    const ROWS_APART: bool = true;
    type Params = MhcSplitParams;

    fn prepare(params: MhcSplitParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        facts.counts(1..=1, 3, 2..=2, 0, 0)?;
        facts.one_domain()?;
        let n = u64::from(params.streams);
        let width = 2 * n + n * n;
        facts::expect("input 0: width", u64::from(facts.input(0, Ty::F32)?.width), width)?;
        facts.vector(0, 3)?;
        facts.vector(1, width)?;
        facts.output(0, Ty::F32, n)?;
        facts.output(1, Ty::F32, n)?;
        facts.output(2, Ty::F32, n * n)?;
        Ok(Self { params })
    }

    #[inline(always)]
    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        cpu::run(&self.params, call);
        Ok(())
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
