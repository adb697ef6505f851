//! `glu@1`: a gate times a value, as in the middle of a gated MLP.
//!
//! silu: `y = silu(g) * u` with `silu(g) = g / (1 + exp(-g))`. silu clamp: `y = silu(min(g, limit)) * clamp(u, -limit, limit)`.
//! gelu: `y = gelu(g) * u` with `gelu(g) = g * (1 + erf(g / sqrt 2)) / 2`.
//!
//! Operands: g, u `[T, w]`. Outputs: y `[T, w]`. The same formulas stand inside an expert ([`GluParams::of`]).

mod cases;
mod cpu;
mod cpu_fast;
mod plan;
#[cfg(test)]
mod tests;

use coli_plugin_api::describe::Activation;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};
use coli_plugin_api::{choice, params};

pub(crate) use cpu::apply;
pub(crate) use cpu_fast::apply as apply_fast;

use crate::contract::{Case, CpuCall, Fast, Op, OpFacts, facts};
use crate::device::{KernelText, Plan, PlanCall};

choice! {
    /// The gate's function.
    pub enum GluKind {
        /// `silu(g) * u`.
        Silu = 0, "silu";
        /// Both clamped at a limit.
        SiluClamp = 1, "silu clamp";
        /// `gelu(g) * u` by the error function.
        Gelu = 2, "gelu";
        /// The gate bounded by a hyperbolic tangent.
        Situ = 3, "situ";
    }
}

params! {
    /// Parameters of `glu@1`.
    pub struct GluParams {
        /// The gate's function.
        kind: GluKind,
        /// The limit, for `silu clamp`; else 0.
        limit: f32 = 0.0..=1e30,
    }
}

impl GluParams {
    /// `gelu(g) * u`.
    pub const GELU: Self = Self { kind: GluKind::Gelu, limit: 0.0 };

    /// The parameters of an expert's activation.
    pub fn of(activation: Activation) -> Self {
        match activation {
            Activation::Silu => Self { kind: GluKind::Silu, limit: 0.0 },
            Activation::SiluClamp { limit } => Self { kind: GluKind::SiluClamp, limit },
        }
    }

    /// Refuses what no kernel does yet.
    pub(crate) fn check(self) -> Result<(), String> {
        match self.kind {
            GluKind::Silu | GluKind::Gelu if self.limit == 0.0 => Ok(()),
            GluKind::SiluClamp if self.limit > 0.0 && self.limit.is_finite() => Ok(()),
            GluKind::Silu | GluKind::SiluClamp | GluKind::Gelu => {
                Err(format!("parameter `limit`: {} with kind {}", self.limit, self.kind.text()))
            }
            // It needs two limits, and these parameters have room for one.
            GluKind::Situ => facts::not_implemented(format!("kind {}", self.kind.text())),
        }
    }
}

/// Records `y = glu(g, u)`.
pub fn record(r: &mut Recorder, gate: Operand, up: Operand, params: GluParams) -> Operand {
    let outs = [ValueDef { domain: gate.domain, ty: Ty::F32, width: gate.width() }];
    let [y] = r.op(OpCall { name: "glu@1", ins: &[gate, up], outs: &outs, params: params.encode(), ..OpCall::default() });
    y
}

/// The prepared op.
pub struct Glu {
    params: GluParams,
}

impl Op for Glu {
    const NAME: &'static str = "glu";
    const VERSION: u16 = 1;
    const ROWS_APART: bool = true;
    type Params = GluParams;

    fn prepare(params: GluParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        params.check()?;
        facts.counts(2..=2, 1, 0..=0, 0, 0)?;
        facts.one_domain()?;
        let width = u64::from(facts.input(0, Ty::F32)?.width);
        facts::expect("input 1: width", u64::from(facts.input(1, Ty::F32)?.width), width)?;
        facts.output(0, Ty::F32, width)?;
        Ok(Self { params })
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        for row in 0..call.rows.len() {
            let y = call.outs[0].row(row);
            y.copy_from_slice(call.ins[0].row(row));
            apply(self.params, y, call.ins[1].row(row));
        }
        Ok(())
    }

    fn fast(&self, call: &mut CpuCall<'_>, fast: &Fast<'_>) -> Result<(), String> {
        cpu_fast::run(self.params, call, fast);
        Ok(())
    }

    fn plan(&self, call: &PlanCall<'_>) -> Result<Plan, String> {
        plan::plan(self.params, call)
    }

    fn kernels() -> &'static [KernelText] {
        plan::KERNELS
    }

    fn cases() -> Vec<Case> {
        cases::all()
    }
}
