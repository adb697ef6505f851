//! `gather@1`: rows of a table by ids.
//!
//! `y[t] = join over j of table[ids[t][j]]`, side by side, as a sum or as a mean. An id of -1 gives zeros, and is not counted by a mean;
//! a mean of nothing is zeros.
//!
//! Operands: ids `[T, k]` i32. Weights: table `[n, w]`. Outputs: y `[T, k * w]` when joined as columns, `[T, w]` as a sum or mean.

mod cases;
mod cpu;
mod plan;
#[cfg(test)]
mod tests;

use coli_plugin_api::describe::WeightRef;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};
use coli_plugin_api::{choice, params};

use crate::contract::{Case, CpuCall, Op, OpFacts};
use crate::device::{KernelText, Plan, PlanCall};

choice! {
    /// What becomes of several rows.
    pub enum Join {
        /// Columns side by side.
        Concat = 0, "concat";
        /// Their sum.
        Sum = 1, "sum";
        /// Their mean.
        Mean = 2, "mean";
    }
}

params! {
    /// Parameters of `gather@1`.
    pub struct GatherParams {
        /// What becomes of several rows.
        join: Join,
    }
}

/// Records `y = table[ids]`, columns side by side.
pub fn record(r: &mut Recorder, ids: Operand, table: WeightRef) -> Operand {
    with(r, ids, table, Join::Concat)
}

/// Records the sum of the rows of a table.
pub fn record_sum(r: &mut Recorder, ids: Operand, table: WeightRef) -> Operand {
    with(r, ids, table, Join::Sum)
}

/// Records the mean of the rows of a table that there are.
pub fn record_mean(r: &mut Recorder, ids: Operand, table: WeightRef) -> Operand {
    with(r, ids, table, Join::Mean)
}

fn with(r: &mut Recorder, ids: Operand, table: WeightRef, join: Join) -> Operand {
    let width = if join == Join::Concat { table.cols.saturating_mul(ids.width()) } else { table.cols };
    let outs = [ValueDef { domain: ids.domain, ty: Ty::F32, width }];
    let params = GatherParams { join }.encode();
    let [y] = r.op(OpCall { name: "gather@1", ins: &[ids], outs: &outs, weights: &[table], params, ..OpCall::default() });
    y
}

/// The prepared op.
pub struct Gather {
    join: Join,
}

impl Op for Gather {
    const NAME: &'static str = "gather";
    const VERSION: u16 = 1;
    type Params = GatherParams;

    fn prepare(params: GatherParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        facts.counts(1..=1, 1, 1..=1, 0, 0)?;
        facts.one_domain()?;
        let ids = facts.input(0, Ty::I32)?;
        let parts = if params.join == Join::Concat { u64::from(ids.width) } else { 1 };
        facts.output(0, Ty::F32, parts * u64::from(facts.weights[0].cols))?;
        Ok(Self { join: params.join })
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        cpu::run(self.join, call)
    }

    fn plan(&self, call: &PlanCall<'_>) -> Result<Plan, String> {
        plan::plan(self.join, call)
    }

    fn kernels() -> &'static [KernelText] {
        plan::KERNELS
    }

    fn cases() -> Vec<Case> {
        cases::all()
    }
}
