//! `act@1`: a function of each number.
//!
//! `y = f(scale * x + w + add)`, with the function by kind. clamp keeps a number within `-limit..=limit`, signsqrt sigmoid is
//! `sigmoid(sign(v) * sqrt(max(|v|, 1e-6)))`, where the sign of 0 is 0.
//!
//! Operands: x `[T, width]`. Weights: none, or w `[width]`. Outputs: y `[T, width]`.

mod cases;
mod cpu;
pub(crate) mod functions;
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
    /// The function.
    pub enum ActKind {
        /// The number itself.
        Linear = 0, "linear";
        /// `x * sigmoid(x)`.
        Silu = 1, "silu";
        /// `1 / (1 + exp(-x))`.
        Sigmoid = 2, "sigmoid";
        /// `x * Phi(x)` by the error function.
        Gelu = 3, "gelu";
        /// The same by its approximation with a hyperbolic tangent.
        GeluTanh = 4, "gelu tanh";
        /// `max(x, 0)`.
        Relu = 5, "relu";
        /// The hyperbolic tangent.
        Tanh = 6, "tanh";
        /// The exponential.
        Exp = 7, "exp";
        /// `sqrt(ln(1 + exp(x)))`.
        SqrtSoftplus = 8, "sqrt softplus";
        /// `sigmoid(sign(x) * sqrt(max(|x|, 1e-6)))`.
        SignsqrtSigmoid = 9, "signsqrt sigmoid";
        /// `min(max(x, -limit), limit)`.
        Clamp = 10, "clamp";
    }
}

params! {
    /// Parameters of `act@1`.
    pub struct ActParams {
        /// The function.
        kind: ActKind,
        /// Multiplies the operand.
        scale: f32,
        /// Is added last.
        add: f32,
        /// The limit of `clamp`; else 0.
        limit: f32 = 0.0..=1e30,
    }
}

impl ActParams {
    /// A function of the operand itself; for a clamp see [`ActParams::clamp`].
    pub fn of(kind: ActKind) -> Self {
        Self { kind, scale: 1.0, add: 0.0, limit: 0.0 }
    }

    /// `scale * x`.
    pub fn scale(scale: f32) -> Self {
        Self::of(ActKind::Linear).scaled(scale)
    }

    /// `min(max(x, -limit), limit)`.
    pub fn clamp(limit: f32) -> Self {
        Self { limit, ..Self::of(ActKind::Clamp) }
    }

    /// With a factor of the operand.
    pub fn scaled(self, scale: f32) -> Self {
        Self { scale, ..self }
    }

    /// With a number that is added before the function.
    pub fn plus(self, add: f32) -> Self {
        Self { add, ..self }
    }
}

/// Records `y = f(scale * x + w + add)`.
pub fn record(r: &mut Recorder, x: Operand, w: Option<WeightRef>, params: ActParams) -> Operand {
    let outs = [ValueDef { domain: x.domain, ty: Ty::F32, width: x.width() }];
    let weights = w.as_slice();
    let [y] = r.op(OpCall { name: "act@1", ins: &[x], outs: &outs, weights, params: params.encode(), ..OpCall::default() });
    y
}

/// The prepared op.
pub struct Act {
    params: ActParams,
}

impl Op for Act {
    const NAME: &'static str = "act";
    const VERSION: u16 = 1;
    const ROWS_APART: bool = true;
    type Params = ActParams;

    fn prepare(params: ActParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        if (params.kind == ActKind::Clamp) != (params.limit > 0.0) {
            return Err(format!("parameter `limit`: {} with kind {}", params.limit, params.kind.text()));
        }
        facts.counts(1..=1, 1, 0..=1, 0, 0)?;
        facts.one_domain()?;
        let width = u64::from(facts.input(0, Ty::F32)?.width);
        if !facts.weights.is_empty() {
            facts.vector(0, width)?;
        }
        facts.output(0, Ty::F32, width)?;
        Ok(Self { params })
    }

    #[inline(always)]
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
