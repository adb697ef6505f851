//! `index_topk@1`: chooses rows of a state by scores of its keys.
//!
//! A row at position p sees the n = (p + 1) / stride first rows of the state. Their scores are
//! `s_j = sum over heads of w_h * relu(scale * (q_h . k_j))`, with w = 1 where there are no weights. The k best are kept, ties to the lower
//! row, and listed in ascending order, then -1; fewer than k are all listed. With `expand` each row j stands for its positions
//! `j * stride ..= j * stride + stride - 1`, and the positions from `n * stride` to p, whose group is not complete, always follow.
//!
//! Blocks of `cand_block` rows narrow the choice: with `cand_given`, only rows of the blocks that the candidates name are scored and
//! listed (ids below 0, and of blocks not seen yet, name nothing). With `cand_out`, that many blocks are given out: the newest one always,
//! and those of the highest scores, ties to the lower block, in ascending order, then -1. A block's score is that of its best scored row; a
//! block without one is not chosen, unless it is the newest.
//!
//! Scores that are not finite are an error, whether or not the choice needs them.
//!
//! Operands: q `[T, heads * d]`, w `[T, heads]` when weighted, candidates `[T, any]` i32 when given. States: rows of one part `[d]`, all
//! kept, read. Outputs: list `[T, k]` i32, or with `expand` `[T, k * stride + stride - 1]`; with `cand_out` also candidates
//! `[T, cand_out]` i32.

mod cases;
mod cpu;
mod plan;

use coli_plugin_api::describe::Keep;
use coli_plugin_api::params;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Access, StateId, Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};

use crate::contract::{Case, CpuCall, Op, OpFacts, facts};
use crate::device::{KernelText, Plan, PlanCall};

params! {
    /// Parameters of `index_topk@1`.
    pub struct IndexTopkParams {
        /// Heads of q.
        heads: u32 = 1..=65_536,
        /// Rows that are kept.
        k: u32 = 1..=1_048_576,
        /// A factor of the inner products.
        scale: f32,
        /// Positions of a row of the state.
        stride: u32 = 1..=65_536,
        /// Whether heads have weights.
        weighted: bool,
        /// Whether positions are listed, rather than rows.
        expand: bool,
        /// Rows of a block; 0 without candidates.
        cand_block: u32 = 0..=1_048_576,
        /// Whether candidates are an operand.
        cand_given: bool,
        /// Blocks that are given out as candidates, or 0.
        cand_out: u32 = 0..=1_048_576,
    }
}

impl IndexTopkParams {
    /// The k best rows of a state of this stride.
    pub fn rows(heads: u32, k: u32, scale: f32, stride: u32) -> Self {
        Self { heads, k, scale, stride, weighted: true, expand: false, cand_block: 0, cand_given: false, cand_out: 0 }
    }

    /// The positions of the k best rows, and those after the last complete group.
    pub fn positions(heads: u32, k: u32, scale: f32, stride: u32) -> Self {
        Self { expand: true, ..Self::rows(heads, k, scale, stride) }
    }

    /// Numbers of a list.
    pub fn list_width(&self) -> u64 {
        let (k, stride) = (u64::from(self.k), u64::from(self.stride));
        if self.expand { k * stride + stride - 1 } else { k }
    }
}

/// Records the choice; gives the list, and the candidates when there are any. `weighted` and `cand_given` are taken from the operands.
pub fn record(
    r: &mut Recorder,
    q: Operand,
    weights: Option<Operand>,
    cand: Option<Operand>,
    state: StateId,
    params: IndexTopkParams,
) -> (Operand, Option<Operand>) {
    let params = IndexTopkParams { weighted: weights.is_some(), cand_given: cand.is_some(), ..params };
    let ins: Vec<Operand> = std::iter::once(q).chain(weights).chain(cand).collect();
    let width = u32::try_from(params.list_width()).unwrap_or(u32::MAX);
    let list = ValueDef { domain: q.domain, ty: Ty::I32, width };
    let outs = [list, ValueDef { width: params.cand_out, ..list }];
    let call = OpCall { name: "index_topk@1", ins: &ins, states: &[(state, Access::Read)], params: params.encode(), ..OpCall::default() };
    if params.cand_out == 0 {
        let [list] = r.op(OpCall { outs: &outs[..1], ..call });
        return (list, None);
    }
    let [list, cand] = r.op(OpCall { outs: &outs, ..call });
    (list, Some(cand))
}

/// The prepared op.
pub struct IndexTopk {
    params: IndexTopkParams,
}

impl Op for IndexTopk {
    const NAME: &'static str = "index_topk";
    const VERSION: u16 = 1;
    type Params = IndexTopkParams;

    fn prepare(params: IndexTopkParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        if (params.cand_block != 0) != (params.cand_given || params.cand_out != 0) {
            let with = if params.cand_block == 0 { "with" } else { "without" };
            return Err(format!("parameter `cand_block`: {} {with} candidates", params.cand_block));
        }
        let ins = 1 + usize::from(params.weighted) + usize::from(params.cand_given);
        facts.counts(ins..=ins, 1 + usize::from(params.cand_out != 0), 0..=0, 1, 0)?;
        facts.one_domain()?;
        let (parts, stride, keep) = facts.rows_state(0, Access::Read)?;
        let [part] = parts else { return Err(format!("state 0: {} parts, expected 1", parts.len())) };
        facts::expect("state 0: stride", u64::from(stride), u64::from(params.stride))?;
        if let Keep::Last(n) = keep {
            return Err(format!("state 0: keeps the last {n}, expected all"));
        }
        let heads = u64::from(params.heads);
        facts::expect("input 0: width", u64::from(facts.input(0, Ty::F32)?.width), heads * u64::from(part.width))?;
        if params.weighted {
            facts::expect("input 1: width", u64::from(facts.input(1, Ty::F32)?.width), heads)?;
        }
        if params.cand_given {
            facts.input(ins - 1, Ty::I32)?;
        }
        facts.output(0, Ty::I32, params.list_width())?;
        if params.cand_out != 0 {
            facts.output(1, Ty::I32, u64::from(params.cand_out))?;
        }
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
