//! `delta@1`: the gated delta rule, one matrix S `[k_width, v_width]` for each value head.
//!
//! A row does, for each value head: `S <- e^g S` (one g a head, or one for each key channel, a row of S), `m = S^T k`, `S <- S + k
//! (sigmoid(beta) (v - m))^T`, `y = S^T q`. S is zero before position 0. The decay is `g = -exp(A) * softplus(gate + dt)`, or `g = bound *
//! sigmoid(exp(A) * (gate + dt))` with a bound below 0; A has one number a head, or -exp(A) is stored in its place. q and k are used as
//! they come: normed and scaled before.
//!
//! Operands: q, k `[T, key_heads * k_width]`, v `[T, heads * v_width]`, gate `[T, heads]` or, per channel, `[T, heads * k_width]`, beta
//! `[T, heads]`. Weights: A, a vector of at least `heads` numbers, of which the first ones are used; dt, a vector as wide as the gate.
//! States: an accumulator `[heads, k_width, v_width]`, updated. Outputs: y `[T, heads * v_width]`.

mod cases;
mod cpu;
mod plan;

use coli_plugin_api::describe::WeightRef;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Access, StateId, Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};
use coli_plugin_api::{choice, params};

use crate::contract::{Case, CpuCall, Op, OpFacts, facts};
use crate::device::{KernelText, Plan, PlanCall};

choice! {
    /// How a gate becomes a decay.
    pub enum DeltaDecay {
        /// `-exp(A) * softplus(gate + dt)`.
        Softplus = 0, "softplus";
        /// `bound * sigmoid(exp(A) * (gate + dt))`.
        Bounded = 1, "bounded";
    }
}

choice! {
    /// What the weight A holds of a head's rate.
    pub enum DeltaRate {
        /// Its logarithm: `exp(A)` is the rate.
        Log = 0, "log";
        /// The rate below zero: `-A` is the rate.
        Negated = 1, "negated";
    }
}

choice! {
    /// Which key head a value head uses.
    pub enum DeltaHeads {
        /// `v / (heads / key_heads)`.
        Grouped = 0, "grouped";
        /// `v mod key_heads`.
        Tiled = 1, "tiled";
    }
}

params! {
    /// Parameters of `delta@1`. The other dimensions are those of the accumulator.
    pub struct DeltaParams {
        /// Heads of q and k; they divide the value heads.
        key_heads: u32 = 1..=65_536,
        /// Which of them a value head uses.
        head_map: DeltaHeads,
        /// How a gate becomes a decay.
        decay: DeltaDecay,
        /// The lowest decay, where it is bounded; else 0.
        bound: f32,
        /// Whether each key channel has a decay of its own.
        per_channel: bool,
        /// What A holds.
        rate: DeltaRate,
    }
}

impl DeltaParams {
    /// One decay a head by softplus; key heads serve consecutive value heads.
    pub fn softplus(key_heads: u32) -> Self {
        Self { key_heads, head_map: DeltaHeads::Grouped, decay: DeltaDecay::Softplus, bound: 0.0, per_channel: false, rate: DeltaRate::Log }
    }

    /// A decay for each key channel between `bound` and 0; as many key heads as value heads.
    pub fn bounded(heads: u32, bound: f32) -> Self {
        Self { decay: DeltaDecay::Bounded, bound, per_channel: true, ..Self::softplus(heads) }
    }
}

/// Records the rule over an accumulator.
#[allow(clippy::too_many_arguments)]
pub fn record(
    r: &mut Recorder,
    q: Operand,
    k: Operand,
    v: Operand,
    gate: Operand,
    beta: Operand,
    a: WeightRef,
    dt: WeightRef,
    state: StateId,
    params: DeltaParams,
) -> Operand {
    let [y] = r.op(OpCall {
        name: "delta@1",
        ins: &[q, k, v, gate, beta],
        outs: &[ValueDef { domain: v.domain, ty: Ty::F32, width: v.width() }],
        weights: &[a, dt],
        states: &[(state, Access::Update)],
        params: params.encode(),
        ..OpCall::default()
    });
    y
}

/// The prepared op.
pub struct Delta {
    params: DeltaParams,
    heads: usize,
    k_width: usize,
    v_width: usize,
}

impl Op for Delta {
    const NAME: &'static str = "delta";
    const VERSION: u16 = 1;
    type Params = DeltaParams;

    fn prepare(params: DeltaParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        check_bound(&params)?;
        facts.counts(5..=5, 1, 2..=2, 1, 0)?;
        facts.one_domain()?;
        let shape = facts.accumulator_state(0)?;
        let [heads, k_width, v_width] = *shape else {
            return Err(format!("state 0: {} dimensions, expected 3: heads, width of a key, width of a value", shape.len()));
        };
        if !heads.is_multiple_of(params.key_heads) {
            return Err(format!("parameter `key_heads`: {} does not divide {heads} heads", params.key_heads));
        }
        let wide = |count: u32, width: u32| u64::from(count) * u64::from(width);
        let gate = if params.per_channel { wide(heads, k_width) } else { u64::from(heads) };
        let (keys, values) = (wide(params.key_heads, k_width), wide(heads, v_width));
        for (index, width) in [keys, keys, values, gate, u64::from(heads)].into_iter().enumerate() {
            facts::expect(&format!("input {index}: width"), u64::from(facts.input(index, Ty::F32)?.width), width)?;
        }
        facts.output(0, Ty::F32, values)?;
        let a = facts.weights[0];
        if a.rows != 1 || a.cols < heads {
            return Err(format!("weight 0 is {}x{}, expected 1x{heads} or longer", a.rows, a.cols));
        }
        facts.vector(1, gate)?;
        Ok(Self { params, heads: heads as usize, k_width: k_width as usize, v_width: v_width as usize })
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        cpu::run(self, call)
    }

    fn plan(&self, call: &PlanCall<'_>) -> Result<Plan, String> {
        plan::plan(self, call)
    }

    fn kernels() -> &'static [KernelText] {
        plan::KERNELS
    }

    fn cases() -> Vec<Case> {
        cases::all()
    }
}

fn check_bound(params: &DeltaParams) -> Result<(), String> {
    match params.decay {
        DeltaDecay::Softplus if params.bound != 0.0 => Err(format!("parameter `bound`: {} with decay softplus, expected 0", params.bound)),
        DeltaDecay::Bounded if params.bound >= 0.0 => Err(format!("parameter `bound`: {}, expected a number below 0", params.bound)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
