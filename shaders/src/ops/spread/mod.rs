//! `spread@1`: a row's result back into its n streams.
//!
//! `h'_s = b_s * y + sum over r of C[r, s] * h_r`, r in order, where h_s is columns `s * D ..` of h and `C[r, s]` column `r * n + s` of
//! comb; without comb, `h'_s = b_s * y + h_s`.
//!
//! Operands: h `[T, n * D]`, y `[T, D]`, b `[T, n]`; then comb `[T, n * n]`, or nothing. Outputs: h' `[T, n * D]`.

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
    /// Parameters of `spread@1`.
    pub struct SpreadParams {
        /// Streams of a row; they divide its width.
        streams: u32 = 1..=1024,
    }
}

/// Records `h'_s = b_s * y + sum of C[r, s] * h_r`, or `b_s * y + h_s`.
pub fn record(r: &mut Recorder, h: Operand, y: Operand, b: Operand, comb: Option<Operand>, streams: u32) -> Operand {
    let ins: Vec<Operand> = [h, y, b].into_iter().chain(comb).collect();
    let outs = [ValueDef { domain: h.domain, ty: Ty::F32, width: h.width() }];
    let params = SpreadParams { streams }.encode();
    let [h] = r.op(OpCall { name: "spread@1", ins: &ins, outs: &outs, params, ..OpCall::default() });
    h
}

/// The prepared op.
pub struct Spread {
    streams: usize,
}

impl Op for Spread {
    const NAME: &'static str = "spread";
    const VERSION: u16 = 1;
    type Params = SpreadParams;

    fn prepare(params: SpreadParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        facts.counts(3..=4, 1, 0..=0, 0, 0)?;
        facts.one_domain()?;
        let (width, streams) = (facts.input(0, Ty::F32)?.width, params.streams);
        if !width.is_multiple_of(streams) {
            return Err(format!("parameter `streams`: {streams} does not divide a width of {width}"));
        }
        let n = u64::from(streams);
        for (index, want) in [(1, u64::from(width / streams)), (2, n), (3, n * n)].into_iter().take(facts.ins.len() - 1) {
            facts::expect(&format!("input {index}: width"), u64::from(facts.input(index, Ty::F32)?.width), want)?;
        }
        facts.output(0, Ty::F32, u64::from(width))?;
        Ok(Self { streams: streams as usize })
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        cpu::run(self.streams, call);
        Ok(())
    }

    fn plan(&self, call: &PlanCall<'_>) -> Result<Plan, String> {
        plan::plan(self.streams as u32, call)
    }

    fn kernels() -> &'static [KernelText] {
        plan::KERNELS
    }

    fn cases() -> Vec<Case> {
        cases::all()
    }
}
