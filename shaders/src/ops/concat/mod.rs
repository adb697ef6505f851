//! `concat@1`: columns side by side.
//!
//! `y[t] = a[t] | b[t] | ...`. The same operand may come several times.
//!
//! Operands: 1 to 16 `[T, w_i]`, all f32 or all i32. Outputs: y `[T, sum of w_i]` of the same type.

mod cases;
mod cpu;
mod plan;
#[cfg(test)]
mod tests;

use coli_plugin_api::params;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};

use crate::contract::{Case, CpuCall, Op, OpFacts};
use crate::device::{KernelText, Plan, PlanCall};

params! {
    /// Parameters of `concat@1`.
    pub struct ConcatParams {
        /// Operands.
        parts: u32 = 1..=16,
    }
}

/// Records `y = parts[0] | parts[1] | ...`. Without parts, which is refused later, y is empty.
pub fn record(r: &mut Recorder, parts: &[Operand]) -> Operand {
    let (domain, ty) = parts.first().map_or_else(|| (r.tokens(), Ty::F32), |first| (first.domain, first.ty));
    let width = parts.iter().fold(0u32, |sum, part| sum.saturating_add(part.width()));
    let params = ConcatParams { parts: u32::try_from(parts.len()).unwrap_or(u32::MAX) };
    let outs = [ValueDef { domain, ty, width }];
    let [y] = r.op(OpCall { name: "concat@1", ins: parts, outs: &outs, params: params.encode(), ..OpCall::default() });
    y
}

/// The prepared op.
pub struct Concat;

impl Op for Concat {
    const NAME: &'static str = "concat";
    const VERSION: u16 = 1;
    const ROWS_APART: bool = true;
    type Params = ConcatParams;

    fn prepare(params: ConcatParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        let parts = params.parts as usize;
        facts.counts(parts..=parts, 1, 0..=0, 0, 0)?;
        facts.one_domain()?;
        let ty = facts.ins[0].ty;
        let mut width = 0;
        for index in 0..parts {
            width += u64::from(facts.input(index, ty)?.width);
        }
        facts.output(0, ty, width)?;
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
