//! `attend@1`: each head of a row looks at rows of the same conversation.
//!
//! `s_j = scale * (q_h . k_j)` over the rows j that are seen, `p = softmax(s)`, `y_h = sum over j of p_j v_j`. Query head h reads K/V
//! head `h / (heads / kv_heads)`: columns `k_col0 + k_width * head` and `v_col0 + v_width * head` of a row, which may overlap, so that
//! V may be K or a part of it. A source is a state's rows that a mask lets through, a list of indices of its rows (-1 is none), or
//! values; one softmax spans up to two sources. A sink is a score of each head that takes part in the softmax and has no V: `p_j =
//! exp(s_j) / (exp(sink_h) + sum over i of exp(s_i))`. The row itself and earlier rows of the step are already stored when it runs; a
//! row of a state is seen from the last position of its group on. A row that sees nothing gives 0.
//!
//! A row that is seen and not stored, and a list with a row whose group is not complete, are errors of the run.
//!
//! Operands: q `[T, heads * k_width]`, then of each source that is a list: indices `[T, n]` i32. States: one of rows for each source, read.
//! Weights: sinks `[heads]` if any. Outputs: y `[T, heads * v_width]`.

mod cases;
mod cpu;
mod cpu_fast;
mod flash;
mod plan;
mod prepare;
#[cfg(test)]
mod tests;

use coli_plugin_api::describe::WeightRef;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Access, StateId, Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};
use coli_plugin_api::{choice, params};

use crate::contract::{Case, CpuCall, Fast, Op, OpFacts};
use crate::device::{KernelText, Plan, PlanCall};

choice! {
    /// Where K and V come from.
    pub enum AttendKind {
        /// No source.
        None = 0, "none";
        /// All rows of a state that the mask lets through.
        Rows = 1, "rows";
        /// Rows of a state, by a list of indices.
        List = 2, "list";
        /// Values of the segment.
        Values = 3, "values";
    }
}

choice! {
    /// Which rows are seen.
    pub enum AttendMask {
        /// Positions up to the row's own; of a state of stride 1.
        Causal = 0, "causal";
        /// The last `window` positions, the row's own included.
        Window = 1, "window";
        /// Positions at most `window` away, on both sides.
        Distance = 2, "distance";
        /// All that a list names.
        All = 3, "all";
        /// Groups that are complete at the row's position.
        Complete = 4, "complete";
    }
}

params! {
    /// One source of K and V.
    pub struct AttendSource {
        /// Where they come from.
        kind: AttendKind,
        /// Which rows are seen.
        mask: AttendMask,
        /// The window's length in positions.
        window: u32,
        /// The first column of K in a row of the source.
        k_col0: u32,
        /// The first column of V.
        v_col0: u32,
    }
}

params! {
    /// Parameters of `attend@1`.
    pub struct AttendParams {
        /// Query heads.
        heads: u32 = 1..=65_536,
        /// K/V heads; they divide the query heads.
        kv_heads: u32 = 1..=65_536,
        /// Columns of K a head.
        k_width: u32 = 1..=65_536,
        /// Columns of V a head.
        v_width: u32 = 1..=65_536,
        /// A factor of the scores.
        scale: f32,
        /// The first source.
        first: AttendSource,
        /// The second source.
        second: AttendSource,
        /// Whether a weight `[heads]` takes part in the softmax without a V.
        sink: bool,
    }
}

impl AttendSource {
    /// No source.
    pub const NONE: Self = Self { kind: AttendKind::None, mask: AttendMask::All, window: 0, k_col0: 0, v_col0: 0 };

    /// Rows of a state of stride 1 up to the row's own position.
    pub fn rows_causal() -> Self {
        Self { kind: AttendKind::Rows, mask: AttendMask::Causal, ..Self::NONE }
    }

    /// Rows of a state of stride 1 at the last `window` positions, the row's own included.
    pub fn rows_window(window: u32) -> Self {
        Self { kind: AttendKind::Rows, mask: AttendMask::Window, window, ..Self::NONE }
    }

    /// Rows of a state of any stride whose groups are complete at the row's position.
    pub fn rows_complete() -> Self {
        Self { kind: AttendKind::Rows, mask: AttendMask::Complete, ..Self::NONE }
    }

    /// Rows of a state of any stride, by a list of their indices.
    pub fn list() -> Self {
        Self { kind: AttendKind::List, mask: AttendMask::All, ..Self::NONE }
    }

    /// The first columns of K and V in a row of the source; both are 0 otherwise.
    pub fn columns(self, k_col0: u32, v_col0: u32) -> Self {
        Self { k_col0, v_col0, ..self }
    }
}

impl AttendParams {
    /// Attention over one source.
    pub fn over(first: AttendSource, heads: u32, kv_heads: u32, k_width: u32, v_width: u32, scale: f32) -> Self {
        Self { heads, kv_heads, k_width, v_width, scale, first, second: AttendSource::NONE, sink: false }
    }

    /// The same with a second source in the same softmax.
    pub fn and(self, second: AttendSource) -> Self {
        Self { second, ..self }
    }

    /// Causal attention over a state whose row is K of all heads, then V of all heads.
    pub fn causal(heads: u32, kv_heads: u32, k_width: u32, v_width: u32, scale: f32) -> Self {
        let first = AttendSource::rows_causal().columns(0, kv_heads.saturating_mul(k_width));
        Self::over(first, heads, kv_heads, k_width, v_width, scale)
    }

    /// The same over a state of any stride: a row sees the groups that are complete at its position.
    pub fn complete(heads: u32, kv_heads: u32, k_width: u32, v_width: u32, scale: f32) -> Self {
        let first = AttendSource::rows_complete().columns(0, kv_heads.saturating_mul(k_width));
        Self::over(first, heads, kv_heads, k_width, v_width, scale)
    }
}

/// Where a source's rows are.
#[derive(Debug, Clone, Copy)]
pub struct AttendInput {
    /// The state.
    pub state: StateId,
    /// Indices of its rows, for a source that is a list.
    pub list: Option<Operand>,
}

impl AttendInput {
    /// Rows that the source's mask lets through.
    pub fn rows(state: StateId) -> Self {
        Self { state, list: None }
    }

    /// Rows by a list of their indices.
    pub fn list(state: StateId, list: Operand) -> Self {
        Self { state, list: Some(list) }
    }
}

/// Records attention over one rows state.
pub fn record(r: &mut Recorder, q: Operand, state: StateId, params: AttendParams) -> Operand {
    record_sources(r, q, &[AttendInput::rows(state)], None, params)
}

/// Records attention over the sources of `params`, an input for each in order; `params.sink` follows from `sink`.
pub fn record_sources(r: &mut Recorder, q: Operand, inputs: &[AttendInput], sink: Option<WeightRef>, params: AttendParams) -> Operand {
    let width = params.heads.saturating_mul(params.v_width);
    let ins: Vec<Operand> = std::iter::once(q).chain(inputs.iter().filter_map(|input| input.list)).collect();
    let states: Vec<_> = inputs.iter().map(|input| (input.state, Access::Read)).collect();
    let [y] = r.op(OpCall {
        name: "attend@1",
        ins: &ins,
        outs: &[ValueDef { domain: q.domain, ty: Ty::F32, width }],
        weights: sink.as_slice(),
        states: &states,
        params: AttendParams { sink: sink.is_some(), ..params }.encode(),
        ..OpCall::default()
    });
    y
}

/// The prepared op.
pub struct Attend {
    params: AttendParams,
    /// Its sources, one or two.
    sources: Vec<Source>,
}

/// What a run needs to know of a source, beyond its columns.
struct Source {
    mask: AttendMask,
    window: u32,
    /// Positions of a row of its state.
    stride: u32,
    /// Numbers of a row of its state.
    width: usize,
    /// The input that lists its rows.
    list: Option<usize>,
}

impl Op for Attend {
    const NAME: &'static str = "attend";
    const VERSION: u16 = 1;
    type Params = AttendParams;

    fn prepare(params: AttendParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        Ok(Self { params, sources: prepare::sources(&params, facts)? })
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        cpu::run(self, call)
    }

    fn fast(&self, call: &mut CpuCall<'_>, fast: &Fast<'_>) -> Result<(), String> {
        cpu_fast::run(self, call, fast)
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
