//! `matmul@1`: a matrix applied to each row.
//!
//! `y[t] = act(W x[t] + b)`.
//!
//! Operands: x `[T, in]`. Weights: W `[out, in]`; then a bias `[out]`, or nothing. Outputs: y `[T, out]`.

mod cases;
mod cpu;
mod cpu_fast;
mod plan;
pub(crate) mod product;
#[cfg(test)]
mod tests;

use coli_plugin_api::describe::WeightRef;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};
use coli_plugin_api::{choice, params};

pub(crate) use cpu::apply;

use crate::contract::{Case, CpuCall, Fast, Op, OpFacts};
use crate::device::{KernelText, Plan, PlanCall};

choice! {
    /// What is applied to each sum.
    pub enum MatmulAct {
        /// Nothing.
        None = 0, "none";
        /// `x * sigmoid(x)`.
        Silu = 1, "silu";
        /// `x * Phi(x)`.
        Gelu = 2, "gelu";
        /// `max(x, 0)`.
        Relu = 3, "relu";
        /// `1 / (1 + exp(-x))`.
        Sigmoid = 4, "sigmoid";
    }
}

params! {
    /// Parameters of `matmul@1`.
    pub struct MatmulParams {
        /// What is applied to each sum.
        act: MatmulAct,
        /// Whether fast mode must keep f32 activations here: routers and decays.
        exact: bool,
    }
}

/// Records `y = W x`.
pub fn record(r: &mut Recorder, x: Operand, w: WeightRef) -> Operand {
    record_act(r, x, w, None, MatmulAct::None)
}

/// Records `y = W x + b`.
pub fn record_biased(r: &mut Recorder, x: Operand, w: WeightRef, bias: WeightRef) -> Operand {
    record_act(r, x, w, Some(bias), MatmulAct::None)
}

/// Records `y = act(W x + b)`.
pub fn record_act(r: &mut Recorder, x: Operand, w: WeightRef, bias: Option<WeightRef>, act: MatmulAct) -> Operand {
    with(r, x, w, bias, MatmulParams { act, exact: false })
}

/// Records `y = W x` with f32 activations in every mode, for routers.
pub fn record_exact(r: &mut Recorder, x: Operand, w: WeightRef) -> Operand {
    with(r, x, w, None, MatmulParams { act: MatmulAct::None, exact: true })
}

fn with(r: &mut Recorder, x: Operand, w: WeightRef, bias: Option<WeightRef>, params: MatmulParams) -> Operand {
    let outs = [ValueDef { domain: x.domain, ty: Ty::F32, width: w.rows }];
    let weights: Vec<WeightRef> = [w].into_iter().chain(bias).collect();
    let [y] = r.op(OpCall { name: "matmul@1", ins: &[x], outs: &outs, weights: &weights, params: params.encode(), ..OpCall::default() });
    y
}

/// The prepared op.
pub struct Matmul {
    act: MatmulAct,
    exact: bool,
}

impl Op for Matmul {
    const NAME: &'static str = "matmul";
    const VERSION: u16 = 1;
    const ROWS_APART: bool = true;
    type Params = MatmulParams;

    fn prepare(params: MatmulParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        facts.counts(1..=1, 1, 1..=2, 0, 0)?;
        facts.one_domain()?;
        let x = facts.input(0, Ty::F32)?;
        let rows = u64::from(facts.weights[0].rows);
        facts.matrix(0, rows, u64::from(x.width))?;
        if facts.weights.len() > 1 {
            facts.vector(1, rows)?;
        }
        facts.output(0, Ty::F32, rows)?;
        Ok(Self { act: params.act, exact: params.exact })
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        cpu::run(self.act, call);
        Ok(())
    }

    fn fast(&self, call: &mut CpuCall<'_>, fast: &Fast<'_>) -> Result<(), String> {
        cpu_fast::run(self.act, self.exact, call, fast);
        Ok(())
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
