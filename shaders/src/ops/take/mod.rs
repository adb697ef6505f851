//! `take@1`: rows of another domain, by index.
//!
//! Into the rows whose outputs are wanted: `y[o] = x[row of the step that o is]`.
//!
//! Operands: x `[T, w]` of the step's rows. Outputs: y `[O, w]` of the wanted ones.

mod cases;
mod cpu;
mod plan;

use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Domain, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};
use coli_plugin_api::{choice, params};

use crate::contract::{Case, CpuCall, Op, OpFacts, facts};
use crate::device::{KernelText, Plan, PlanCall};

choice! {
    /// Where indices come from.
    pub enum TakeBy {
        /// The step says which of its rows are wanted.
        Outs = 0, "outs";
        /// An operand.
        Index = 1, "index";
    }
}

params! {
    /// Parameters of `take@1`.
    pub struct TakeParams {
        /// Where indices come from.
        by: TakeBy,
    }
}

/// Records the taking of the wanted rows.
pub fn record(r: &mut Recorder, x: Operand) -> Operand {
    let domain = r.outs();
    let [y] = r.op(OpCall {
        name: "take@1",
        ins: &[x],
        outs: &[ValueDef { domain, ty: x.ty, width: x.width() }],
        params: TakeParams { by: TakeBy::Outs }.encode(),
        ..OpCall::default()
    });
    y
}

/// The prepared op.
pub struct Take;

impl Op for Take {
    const NAME: &'static str = "take";
    const VERSION: u16 = 1;
    type Params = TakeParams;

    fn prepare(params: TakeParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        if params.by != TakeBy::Outs {
            return facts::not_implemented("an index operand");
        }
        facts.counts(1..=1, 1, 0..=0, 0, 0)?;
        let (x, y) = (facts.ins[0], facts.outs[0]);
        facts.output(0, x.ty, u64::from(x.width))?;
        if *x.domain != Domain::Tokens || *y.domain != Domain::Outs {
            return Err(format!("rows of {:?} into rows of {:?}, expected those of the step into the wanted ones", x.domain, y.domain));
        }
        Ok(Self)
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        cpu::run(call);
        Ok(())
    }

    fn plan(&self, call: &PlanCall<'_>) -> Result<Plan, String> {
        plan::plan(call)
    }

    fn kernels() -> &'static [KernelText] {
        plan::KERNELS
    }

    fn cases() -> Vec<Case> {
        cases::all()
    }
}
