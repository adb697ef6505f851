//! `sample@1`: one token id a row.
//!
//! Temperature 0 is greedy: the highest logit, the lowest id among equals. Otherwise `p = softmax(logits / temperature)` over the ids that
//! are kept: the `top_k` best, of these the fewest best whose probabilities reach `top_p` (at least one), and of these the ones that are
//! at least `min_p` times as probable as the best. One draw from a counter generator ([`philox`]) keyed by the conversation's seed, with
//! the row's position as its counter, picks among them in the order of ids: the same seed gives the same text, whatever else runs.
//!
//! Probabilities are whole numbers, in units of 2^-31 of the best one's, so that their sums are exact in any order. An id whose
//! probability is below half a unit is never drawn.
//!
//! Operands: logits `[O, V]`. Outputs: id `[O, 1]` i32. How a token is chosen comes with the step ([`crate::contract::Sampling`]).

mod cases;
mod cpu;
pub mod philox;
mod plan;

use coli_plugin_api::params;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Domain, Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};

pub use cpu::{choose, kept};

use crate::contract::{Case, CpuCall, Op, OpFacts};
use crate::device::{KernelText, Plan, PlanCall};

params! {
    /// Parameters of `sample@1`.
    pub struct SampleParams {
        /// Ids at or above this are never chosen; 0 is the width of the logits.
        vocab: u32,
    }
}

/// Records the choice of a token from every row of logits.
pub fn record(r: &mut Recorder, logits: Operand) -> Operand {
    let [id] = r.op(OpCall {
        name: "sample@1",
        ins: &[logits],
        outs: &[ValueDef { domain: logits.domain, ty: Ty::I32, width: 1 }],
        params: SampleParams { vocab: 0 }.encode(),
        ..OpCall::default()
    });
    id
}

/// The prepared op.
pub struct Sample {
    vocab: usize,
}

impl Op for Sample {
    const NAME: &'static str = "sample";
    const VERSION: u16 = 1;
    type Params = SampleParams;

    fn prepare(params: SampleParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        facts.counts(1..=1, 1, 0..=0, 0, 0)?;
        facts.one_domain()?;
        let logits = facts.input(0, Ty::F32)?;
        facts.output(0, Ty::I32, 1)?;
        if *logits.domain != Domain::Outs {
            return Err(format!("input 0: rows of {:?}, expected the wanted ones", logits.domain));
        }
        if params.vocab > logits.width {
            return Err(format!("parameter `vocab`: {} of {} logits", params.vocab, logits.width));
        }
        Ok(Self { vocab: if params.vocab == 0 { logits.width as usize } else { params.vocab as usize } })
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        for (row, at) in call.rows.iter().enumerate() {
            let id = choose(&call.ins[0].row(row)[..self.vocab], &call.sampling[row], at.pos)?;
            call.outs[0].ints(row)[0] = id as i32;
        }
        Ok(())
    }

    fn plan(&self, call: &PlanCall<'_>) -> Result<Plan, String> {
        plan::plan(self.vocab, call)
    }

    fn kernels() -> &'static [KernelText] {
        plan::KERNELS
    }

    fn cases() -> Vec<Case> {
        cases::all()
    }
}
