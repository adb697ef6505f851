//! `gather@1`: rows of a table by ids.
//!
//! `y[t] = join over j of table[ids[t][j]]`; an id of -1 gives zeros.
//!
//! Operands: ids `[T, k]` i32. Weights: table `[n, w]`. Outputs: y `[T, k * w]` when joined as columns, `[T, w]` as a sum or mean.

mod cases;
mod cpu;

use coli_plugin_api::describe::WeightRef;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};
use coli_plugin_api::{choice, params};

use crate::contract::{Case, CpuCall, Op, OpFacts, facts};

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
    let width = table.cols.saturating_mul(ids.width());
    let [y] = r.op(OpCall {
        name: "gather@1",
        ins: &[ids],
        outs: &[ValueDef { domain: ids.domain, ty: Ty::F32, width }],
        weights: &[table],
        params: GatherParams { join: Join::Concat }.encode(),
        ..OpCall::default()
    });
    y
}

/// The prepared op.
pub struct Gather;

impl Op for Gather {
    const NAME: &'static str = "gather";
    const VERSION: u16 = 1;
    type Params = GatherParams;

    fn prepare(params: GatherParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        facts.counts(1..=1, 1, 1..=1, 0, 0)?;
        facts.one_domain()?;
        if params.join != Join::Concat {
            return facts::not_implemented(format!("join {}", params.join.text()));
        }
        let ids = facts.input(0, Ty::I32)?;
        let table = facts.weights[0];
        facts.output(0, Ty::F32, u64::from(ids.width) * u64::from(table.cols))?;
        Ok(Self)
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        cpu::run(call)
    }

    fn cases() -> Vec<Case> {
        cases::all()
    }
}
