//! `short_conv@1`: a causal convolution over the positions of a conversation, each column by itself.
//!
//! `y[c] = act(sum over j < taps of w[c][j] * x[pos - (taps - 1 - j) * dilation][c])`, and x is added after the activation when it is a
//! residual. Positions before 0 count as zeros. The op stores the row's x itself, before it reads.
//!
//! Operands: x `[T, w]`. Weights: one `[w, taps]`, the last tap for the row's own position. States: rows of one part `[w]`, stride 1, that
//! keep at least the last `(taps - 1) * dilation` positions, appended. Outputs: y `[T, w]`.

mod cases;
mod cpu;
mod plan;

use coli_plugin_api::describe::WeightRef;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Access, StateId, Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};
use coli_plugin_api::{choice, params};

use crate::contract::{Case, CpuCall, Op, OpFacts};
use crate::device::{KernelText, Plan, PlanCall};

choice! {
    /// What follows the sum.
    pub enum ShortConvAct {
        /// Nothing.
        None = 0, "none";
        /// `x * sigmoid(x)`.
        Silu = 1, "silu";
    }
}

params! {
    /// Parameters of `short_conv@1`.
    pub struct ShortConvParams {
        /// Positions that a row sums over.
        taps: u32 = 1..=1024,
        /// Distance between them.
        dilation: u32 = 1..=65_536,
        /// What follows the sum.
        act: ShortConvAct,
        /// Whether x is added at the end.
        residual: bool,
    }
}

impl ShortConvParams {
    /// The last `taps` positions, then silu.
    pub fn silu(taps: u32) -> Self {
        Self { taps, dilation: 1, act: ShortConvAct::Silu, residual: false }
    }
}

/// Records `y = short_conv(x)`.
pub fn record(r: &mut Recorder, x: Operand, w: WeightRef, state: StateId, params: ShortConvParams) -> Operand {
    let [y] = r.op(OpCall {
        name: "short_conv@1",
        ins: &[x],
        outs: &[ValueDef { domain: x.domain, ty: Ty::F32, width: x.width() }],
        weights: &[w],
        states: &[(state, Access::Append)],
        params: params.encode(),
        ..OpCall::default()
    });
    y
}

/// The prepared op.
pub struct ShortConv {
    params: ShortConvParams,
}

impl Op for ShortConv {
    const NAME: &'static str = "short_conv";
    const VERSION: u16 = 1;
    type Params = ShortConvParams;

    fn prepare(params: ShortConvParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        facts.counts(1..=1, 1, 1..=1, 1, 0)?;
        facts.one_domain()?;
        let width = facts.input(0, Ty::F32)?.width;
        facts.output(0, Ty::F32, u64::from(width))?;
        facts.matrix(0, u64::from(width), u64::from(params.taps))?;
        facts.window_state(0, &[width], u64::from(params.taps - 1) * u64::from(params.dilation))?;
        Ok(Self { params })
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        cpu::run(&self.params, call)
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

#[cfg(test)]
mod tests;
