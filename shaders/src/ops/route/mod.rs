//! `route@1`: chooses k experts a row and weighs them.
//!
//! Scores are `softmax(logits)` over all experts, or `sigmoid` or `sqrt(softplus)` of each logit. What is chosen by is the scores, plus a
//! bias where there is one. Of G groups of `E / G` experts the best ones are kept, a group counting as the sum of its best two; inside them
//! the k highest are chosen, in descending order. Ties go to the lower group and the lower id. Given ids are taken as they are.
//!
//! Weights are the scores of the chosen, without bias; when renormalised divided by their sum, to which 1e-20 is added unless scores are a
//! softmax; times `scale`.
//!
//! Operands: logits `[T, E]`; then given ids `[T, k]` i32. Weights: none, or the bias `[E]`. Outputs: ids `[T, k]` i32, weights `[T, k]`.

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

use crate::contract::{Case, CpuCall, Op, OpFacts, facts};
use crate::device::{KernelText, Plan, PlanCall};

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

    /// The k best sigmoids, divided by their sum, times a factor.
    pub fn sigmoid(k: u32, scale: f32) -> Self {
        Self { score: RouteScore::Sigmoid, scale, ..Self::softmax(k, true) }
    }

    /// The k best of `sqrt(softplus)`, divided by their sum, times a factor.
    pub fn sqrt_softplus(k: u32, scale: f32) -> Self {
        Self { score: RouteScore::SqrtSoftplus, ..Self::sigmoid(k, scale) }
    }

    /// Chosen inside the best of the groups only.
    pub fn grouped(self, groups: u32, kept: u32) -> Self {
        Self { groups, groups_kept: kept, ..self }
    }
}

/// Records the choice; gives ids and weights.
pub fn record(r: &mut Recorder, logits: Operand, params: RouteParams) -> (Operand, Operand) {
    with(r, &[logits], &[], params)
}

/// Records the choice by biased scores; gives ids and weights.
pub fn record_biased(r: &mut Recorder, logits: Operand, bias: WeightRef, params: RouteParams) -> (Operand, Operand) {
    with(r, &[logits], &[bias], RouteParams { bias: RouteBias::Pick, ..params })
}

/// Records the weights of given ids; gives ids and weights.
pub fn record_given(r: &mut Recorder, logits: Operand, ids: Operand, params: RouteParams) -> (Operand, Operand) {
    with(r, &[logits, ids], &[], RouteParams { given_ids: true, ..params })
}

fn with(r: &mut Recorder, ins: &[Operand], weights: &[WeightRef], params: RouteParams) -> (Operand, Operand) {
    let ids = ValueDef { domain: ins[0].domain, ty: Ty::I32, width: params.k };
    let outs = [ids, ValueDef { ty: Ty::F32, ..ids }];
    let [ids, weights] = r.op(OpCall { name: "route@1", ins, outs: &outs, weights, params: params.encode(), ..OpCall::default() });
    (ids, weights)
}

impl RouteParams {
    /// Whether k experts can be chosen of so many.
    fn check_groups(self, experts: u32) -> Result<(), String> {
        let Self { k, groups, groups_kept, .. } = self;
        if groups_kept > groups {
            return Err(format!("parameter `groups_kept`: {groups_kept} of {groups} groups"));
        }
        if !experts.is_multiple_of(groups) {
            return Err(format!("parameter `groups`: {groups} does not divide {experts} experts"));
        }
        let group = experts / groups;
        if groups > 1 && group < 2 {
            return Err(format!("parameter `groups`: {groups} of {group} experts each, expected 2 or more each"));
        }
        let choice = u64::from(group) * u64::from(groups_kept);
        if !self.given_ids && u64::from(k) > choice {
            return Err(format!("parameter `k`: {k} of {choice} experts"));
        }
        Ok(())
    }
}

/// The prepared op.
pub struct Route {
    params: RouteParams,
}

impl Op for Route {
    const NAME: &'static str = "route";
    const VERSION: u16 = 1;
    const ROWS_APART: bool = true;
    type Params = RouteParams;

    fn prepare(params: RouteParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        if params.bias == RouteBias::ByModality {
            return facts::not_implemented(format!("bias {}", params.bias.text()));
        }
        if params.shared != 0 {
            return facts::not_implemented("shared columns");
        }
        let (inputs, biases) = (1 + usize::from(params.given_ids), usize::from(params.bias == RouteBias::Pick));
        facts.counts(inputs..=inputs, 2, biases..=biases, 0, 0)?;
        facts.one_domain()?;
        let experts = facts.input(0, Ty::F32)?.width;
        if params.bias == RouteBias::Pick {
            facts.vector(0, u64::from(experts))?;
        }
        if params.given_ids {
            if params.bias != RouteBias::None || params.groups != 1 {
                return Err("parameter `given_ids`: on with a bias or groups, which are for choosing".into());
            }
            facts::expect("input 1: width", u64::from(facts.input(1, Ty::I32)?.width), u64::from(params.k))?;
        }
        params.check_groups(experts)?;
        facts.output(0, Ty::I32, u64::from(params.k))?;
        facts.output(1, Ty::F32, u64::from(params.k))?;
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
