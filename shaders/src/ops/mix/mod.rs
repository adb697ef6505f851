//! `mix@1`: n streams of a row into one.
//!
//! `y = sum over s of a_s h_s`, stream after stream, where h_s is columns `s * D ..` of h; without a, the streams' mean.
//!
//! Operands: h `[T, n * D]`; then a `[T, n]`, or nothing. Outputs: y `[T, D]`.

mod cases;
mod cpu;
mod plan;
#[cfg(test)]
mod tests;

use coli_plugin_api::params;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};

pub(crate) use cpu::add;

use crate::contract::{Case, CpuCall, Op, OpFacts, facts};
use crate::device::{KernelText, Plan, PlanCall};

params! {
    /// Parameters of `mix@1`.
    pub struct MixParams {
        /// Streams of a row; they divide its width.
        streams: u32 = 1..=1024,
    }
}

/// Records `y = sum of a_s h_s`, or the mean of the streams.
pub fn record(r: &mut Recorder, h: Operand, a: Option<Operand>, streams: u32) -> Operand {
    // A number of streams that does not divide the width is refused later, with its reason.
    let width = h.width() / streams.max(1);
    let ins: Vec<Operand> = [h].into_iter().chain(a).collect();
    let outs = [ValueDef { domain: h.domain, ty: Ty::F32, width }];
    let [y] = r.op(OpCall { name: "mix@1", ins: &ins, outs: &outs, params: MixParams { streams }.encode(), ..OpCall::default() });
    y
}

/// The prepared op.
pub struct Mix {
    streams: usize,
}

impl Op for Mix {
    const NAME: &'static str = "mix";
    const VERSION: u16 = 1;
    const ROWS_APART: bool = true;
    type Params = MixParams;

    fn prepare(params: MixParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        facts.counts(1..=2, 1, 0..=0, 0, 0)?;
        facts.one_domain()?;
        let (width, streams) = (facts.input(0, Ty::F32)?.width, params.streams);
        if !width.is_multiple_of(streams) {
            return Err(format!("parameter `streams`: {streams} does not divide a width of {width}"));
        }
        if facts.ins.len() > 1 {
            facts::expect("input 1: width", u64::from(facts.input(1, Ty::F32)?.width), u64::from(streams))?;
        }
        facts.output(0, Ty::F32, u64::from(width / streams))?;
        Ok(Self { streams: streams as usize })
    }

    #[inline(always)]
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
