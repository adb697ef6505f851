//! `norm@1`: scales each of G groups of a row to a common size.
//!
//! `y = v / root * w * scale` over each group of `width / G` columns, where
//! - rms: v is x and the root `sqrt(mean(x^2) + eps)`,
//! - layer: v is `x - mean(x)` and the root `sqrt(mean(v^2) + eps)`; a bias may be added after the weight, before the scale,
//! - l2: v is x and the root `sqrt(sum(x^2) + eps)`.
//!
//! eps outside is added to the root instead. A zero-centred weight is stored as its distance from 1, and 1 is added in f32.
//!
//! Operands: x `[T, w]`. Weights: none, or one of `[w / G]` used by every group, or one of `[w]`; then, for layer, a bias of the same
//! length, or nothing. Outputs: y `[T, w]`.

mod cases;
mod cpu;
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
    /// What a group is divided by.
    pub enum NormKind {
        /// The root of the mean square.
        Rms = 0, "rms";
        /// The standard deviation, after subtracting the mean.
        Layer = 1, "layer";
        /// The root of the sum of squares.
        L2 = 2, "l2";
    }
}

choice! {
    /// What multiplies the result.
    pub enum Weighting {
        /// Nothing.
        None = 0, "none";
        /// One weight for all groups.
        Shared = 1, "shared";
        /// A weight for each column of the row.
        Full = 2, "full";
    }
}

choice! {
    /// Where eps is added.
    pub enum EpsPlace {
        /// To the mean (or sum) under the root.
        Inside = 0, "inside";
        /// To the root.
        Outside = 1, "outside";
    }
}

params! {
    /// Parameters of `norm@1`.
    pub struct NormParams {
        /// What a group is divided by.
        kind: NormKind,
        /// Groups of a row; they divide its width.
        groups: u32 = 1..=1_048_576,
        /// What multiplies the result.
        weighting: Weighting,
        /// Whether the weight is stored as its distance from 1.
        zero_centred: bool,
        /// Keeps the divisor from zero.
        eps: f32 = 0.0..=1.0,
        /// Where it is added.
        eps_place: EpsPlace,
        /// A factor of the result.
        scale: f32,
    }
}

impl NormParams {
    /// The root of the mean square over the whole row, times a weight.
    pub fn rms(eps: f32) -> Self {
        let (kind, weighting, eps_place) = (NormKind::Rms, Weighting::Shared, EpsPlace::Inside);
        Self { kind, groups: 1, weighting, zero_centred: false, eps, eps_place, scale: 1.0 }
    }

    /// The standard deviation over the whole row, times a weight, and plus a bias where there are two weights.
    pub fn layer(eps: f32) -> Self {
        Self { kind: NormKind::Layer, ..Self::rms(eps) }
    }

    /// The root of the sum of squares of each group, without a weight, times a factor.
    pub fn l2(groups: u32, eps: f32, scale: f32) -> Self {
        Self { kind: NormKind::L2, groups, scale, ..Self::rms(eps).unweighted() }
    }

    /// Each of so many groups by itself.
    pub fn per_head(self, groups: u32) -> Self {
        Self { groups, ..self }
    }

    /// The weight has a number for each column of the row, not of a group.
    pub fn full(self) -> Self {
        Self { weighting: Weighting::Full, ..self }
    }

    /// Without a weight.
    pub fn unweighted(self) -> Self {
        Self { weighting: Weighting::None, ..self }
    }

    /// The weight is stored as its distance from 1.
    pub fn zero_centred(self) -> Self {
        Self { zero_centred: true, ..self }
    }

    /// eps is added to the root.
    pub fn eps_outside(self) -> Self {
        Self { eps_place: EpsPlace::Outside, ..self }
    }
}

/// Records `y = norm(x)`; weights are none, a weight, or a weight and a bias.
pub fn record(r: &mut Recorder, x: Operand, weights: &[WeightRef], params: NormParams) -> Operand {
    let outs = [ValueDef { domain: x.domain, ty: Ty::F32, width: x.width() }];
    let [y] = r.op(OpCall { name: "norm@1", ins: &[x], outs: &outs, weights, params: params.encode(), ..OpCall::default() });
    y
}

/// The prepared op.
pub struct Norm {
    params: NormParams,
}

impl Op for Norm {
    const NAME: &'static str = "norm";
    const VERSION: u16 = 1;
    const ROWS_APART: bool = true;
    type Params = NormParams;

    fn prepare(params: NormParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        if params.zero_centred && params.weighting == Weighting::None {
            return Err("parameter `zero_centred`: on without a weight".into());
        }
        let weights = match (params.weighting, params.kind) {
            (Weighting::None, _) => 0..=0,
            (_, NormKind::Layer) => 1..=2,
            _ => 1..=1,
        };
        facts.counts(1..=1, 1, weights, 0, 0)?;
        facts.one_domain()?;
        let width = facts.input(0, Ty::F32)?.width;
        facts.output(0, Ty::F32, u64::from(width))?;
        if !width.is_multiple_of(params.groups) {
            return Err(format!("parameter `groups`: {} does not divide a width of {width}", params.groups));
        }
        let len = if params.weighting == Weighting::Full { width } else { width / params.groups };
        for index in 0..facts.weights.len() {
            facts.vector(index, u64::from(len))?;
        }
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
