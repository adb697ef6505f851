//! `matmul_heads@1`: G matrices, each applied to its own columns of a row.
//!
//! `y_g = W_g x_g`, or transposed `y_g = W_g^T x_g`, where W_g is rows `g * out ..` of W and x_g, y_g the g-th of G groups of columns.
//!
//! Operands: x `[T, G * in]`, transposed `[T, G * out]`. Weights: W `[G * out, in]`. Outputs: y `[T, G * out]`, transposed `[T, G * in]`.

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
    /// Parameters of `matmul_heads@1`.
    pub struct MatmulHeadsParams {
        /// Matrices, G; they divide W's rows.
        groups: u32 = 1..=1_048_576,
        /// Whether each is applied transposed.
        transpose: bool,
    }
}

/// Records `y_g = W_g x_g`, or `y_g = W_g^T x_g`.
pub fn record(r: &mut Recorder, x: Operand, w: WeightRef, groups: u32, transpose: bool) -> Operand {
    let width = if transpose { w.cols.saturating_mul(groups) } else { w.rows };
    let outs = [ValueDef { domain: x.domain, ty: Ty::F32, width }];
    let params = MatmulHeadsParams { groups, transpose }.encode();
    let [y] = r.op(OpCall { name: "matmul_heads@1", ins: &[x], outs: &outs, weights: &[w], params, ..OpCall::default() });
    y
}

/// The prepared op.
pub struct MatmulHeads {
    params: MatmulHeadsParams,
}

impl Op for MatmulHeads {
    const NAME: &'static str = "matmul_heads";
    const VERSION: u16 = 1;
    const ROWS_APART: bool = true;
    type Params = MatmulHeadsParams;

    fn prepare(params: MatmulHeadsParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        facts.counts(1..=1, 1, 1..=1, 0, 0)?;
        facts.one_domain()?;
        let (weight, groups) = (facts.weights[0], params.groups);
        if weight.rows == 0 || weight.cols == 0 || !weight.rows.is_multiple_of(groups) {
            return Err(format!("weight 0 is {}x{}, expected rows for {groups} groups", weight.rows, weight.cols));
        }
        let (rows, columns) = (u64::from(weight.rows), u64::from(weight.cols) * u64::from(groups));
        let (x, y) = if params.transpose { (rows, columns) } else { (columns, rows) };
        facts::expect("input 0: width", u64::from(facts.input(0, Ty::F32)?.width), x)?;
        facts.output(0, Ty::F32, y)?;
        Ok(Self { params })
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        let groups = self.params.groups as usize;
        if self.params.transpose {
            cpu::transposed(groups, call)
        } else {
            cpu::plain(groups, call)
        }
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
