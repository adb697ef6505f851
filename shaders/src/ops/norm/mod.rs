//! `norm@1`: scales each of G groups of a row to a common size.
//!
//! rms: `y = x / sqrt(mean(x^2) + eps) * w * scale` over each group of `width / G` columns. l2 divides by `sqrt(sum(x^2) + eps)`, layer
//! subtracts the mean first and may add a bias. A zero-centred weight is `1 + w`.
//!
//! Operands: x `[T, w]`. Weights: none, or one of `[w / G]` used by every group, or one of `[w]`; then a bias. Outputs: y `[T, w]`.

mod cases;
mod cpu;

use coli_plugin_api::describe::WeightRef;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};
use coli_plugin_api::{choice, params};

use crate::contract::{Case, CpuCall, Op, OpFacts, facts};

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
}

/// Records `y = norm(x)`.
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
    type Params = NormParams;

    fn prepare(params: NormParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        if params.kind != NormKind::Rms {
            return facts::not_implemented(format!("kind {}", params.kind.text()));
        }
        if params.zero_centred {
            return facts::not_implemented("zero-centred weights");
        }
        if params.eps_place != EpsPlace::Inside {
            return facts::not_implemented("eps outside the root");
        }
        let weights = usize::from(params.weighting != Weighting::None);
        facts.counts(1..=1, 1, weights..=weights, 0, 0)?;
        facts.one_domain()?;
        let width = facts.input(0, Ty::F32)?.width;
        facts.output(0, Ty::F32, u64::from(width))?;
        if !width.is_multiple_of(params.groups) {
            return Err(format!("parameter `groups`: {} does not divide a width of {width}", params.groups));
        }
        match params.weighting {
            Weighting::None => {}
            Weighting::Shared => drop(facts.vector(0, u64::from(width / params.groups))?),
            Weighting::Full => drop(facts.vector(0, u64::from(width))?),
        }
        Ok(Self { params })
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        cpu::run(&self.params, call);
        Ok(())
    }

    fn cases() -> Vec<Case> {
        cases::all()
    }
}
