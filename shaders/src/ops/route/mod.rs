//! `route@1`: chooses k experts a row and weighs them.
//!
//! Scores are `softmax(logits)` over all experts; the k highest are chosen, in descending order, ties to the lower id. Their weights are
//! their scores, divided by their sum when renormalised, times `scale`.
//!
//! Operands: logits `[T, E]`. Outputs: ids `[T, k]` i32, weights `[T, k]`.

mod cases;
mod cpu;

use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};
use coli_plugin_api::{choice, params};

use crate::contract::{Case, CpuCall, Op, OpFacts, facts};

choice! {
    /// How logits become scores.
    pub enum RouteScore {
        /// Over all experts.
        Softmax = 0, "softmax";
        /// Each by itself.
        Sigmoid = 1, "sigmoid";
        /// `sqrt(softplus(x))`, each by itself.
        SqrtSoftplus = 2, "sqrt softplus";
    }
}

choice! {
    /// What is added to scores for choosing only.
    pub enum RouteBias {
        /// Nothing.
        None = 0, "none";
        /// A weight `[E]`.
        Pick = 1, "pick";
        /// A weight for each kind of row.
        ByModality = 2, "by modality";
    }
}

params! {
    /// Parameters of `route@1`.
    pub struct RouteParams {
        /// How logits become scores.
        score: RouteScore,
        /// Experts a row.
        k: u32 = 1..=1024,
        /// What is added for choosing.
        bias: RouteBias,
        /// Groups of experts.
        groups: u32 = 1..=1024,
        /// Groups that may be chosen from.
        groups_kept: u32 = 1..=1024,
        /// Whether the ids are an operand.
        given_ids: bool,
        /// Columns after the experts that share the scores and are always chosen.
        shared: u32 = 0..=1024,
        /// Whether weights are divided by their sum.
        renormalise: bool,
        /// A factor of the weights.
        scale: f32,
    }
}

impl RouteParams {
    /// The k best of a softmax over all experts.
    pub fn softmax(k: u32, renormalise: bool) -> Self {
        let (score, bias) = (RouteScore::Softmax, RouteBias::None);
        Self { score, k, bias, groups: 1, groups_kept: 1, given_ids: false, shared: 0, renormalise, scale: 1.0 }
    }
}

/// Records the choice; gives ids and weights.
pub fn record(r: &mut Recorder, logits: Operand, params: RouteParams) -> (Operand, Operand) {
    let ids = ValueDef { domain: logits.domain, ty: Ty::I32, width: params.k };
    let weights = ValueDef { ty: Ty::F32, ..ids };
    let [ids, weights] =
        r.op(OpCall { name: "route@1", ins: &[logits], outs: &[ids, weights], params: params.encode(), ..OpCall::default() });
    (ids, weights)
}

/// The prepared op.
pub struct Route {
    params: RouteParams,
}

impl Op for Route {
    const NAME: &'static str = "route";
    const VERSION: u16 = 1;
    type Params = RouteParams;

    fn prepare(params: RouteParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        if params.score != RouteScore::Softmax {
            return facts::not_implemented(format!("score {}", params.score.text()));
        }
        if params.bias != RouteBias::None || params.groups != 1 || params.groups_kept != 1 {
            return facts::not_implemented("bias and groups");
        }
        if params.given_ids || params.shared != 0 {
            return facts::not_implemented("given ids and shared columns");
        }
        facts.counts(1..=1, 2, 0..=0, 0, 0)?;
        facts.one_domain()?;
        let experts = facts.input(0, Ty::F32)?.width;
        if params.k > experts {
            return Err(format!("parameter `k`: {} of {experts} experts", params.k));
        }
        facts.output(0, Ty::I32, u64::from(params.k))?;
        facts.output(1, Ty::F32, u64::from(params.k))?;
        Ok(Self { params })
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        cpu::run(&self.params, call)
    }

    fn cases() -> Vec<Case> {
        cases::all()
    }
}
