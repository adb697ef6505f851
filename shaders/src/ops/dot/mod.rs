//! `dot@1`: inner products of two values, group by group.
//!
//! `y_g = scale * sum over the columns of group g of a * b`, for each of G groups of `w / G` columns.
//!
//! Operands: a, b `[T, w]`. Outputs: y `[T, G]`.

mod cases;
mod cpu;
mod plan;
#[cfg(test)]
mod tests;

use coli_plugin_api::params;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};

use crate::contract::{Case, CpuCall, Op, OpFacts, facts};
use crate::device::{KernelText, Plan, PlanCall};

params! {
    /// Parameters of `dot@1`.
    pub struct DotParams {
        /// Groups of a row; they divide its width.
        groups: u32 = 1..=1_048_576,
        /// A factor of the result.
        scale: f32,
    }
}

/// Records `y_g = scale * a_g . b_g`.
pub fn record(r: &mut Recorder, a: Operand, b: Operand, groups: u32, scale: f32) -> Operand {
    let params = DotParams { groups, scale };
    let outs = [ValueDef { domain: a.domain, ty: Ty::F32, width: groups }];
    let [y] = r.op(OpCall { name: "dot@1", ins: &[a, b], outs: &outs, params: params.encode(), ..OpCall::default() });
    y
}

/// The prepared op.
pub struct Dot {
    params: DotParams,
}

impl Op for Dot {
    const NAME: &'static str = "dot";
    const VERSION: u16 = 1;
    const ROWS_APART: bool = true;
    type Params = DotParams;

    fn prepare(params: DotParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        facts.counts(2..=2, 1, 0..=0, 0, 0)?;
        facts.one_domain()?;
        let width = facts.input(0, Ty::F32)?.width;
        facts::expect("input 1: width", u64::from(facts.input(1, Ty::F32)?.width), u64::from(width))?;
        if !width.is_multiple_of(params.groups) {
            return Err(format!("parameter `groups`: {} does not divide a width of {width}", params.groups));
        }
        facts.output(0, Ty::F32, u64::from(params.groups))?;
        Ok(Self { params })
    }

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
