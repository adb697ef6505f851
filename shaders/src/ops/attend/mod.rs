//! `attend@1`: each head of a row looks at rows of the same conversation.
//!
//! `s_j = scale * (q_h . k_j)` over the rows j that the mask lets through, `p = softmax(s)`, `y_h = sum over j of p_j v_j`. Query head h
//! reads K/V head `h / (heads / kv_heads)`. A source is a state's rows, a list into them, or values; one softmax spans up to two sources.
//! The row itself and earlier rows of the step are already stored when it runs. A row that sees nothing gives 0.
//!
//! Operands: q `[T, heads * k_width]`, then those of the sources. States: one rows state for each source of rows, read.
//! Outputs: y `[T, heads * v_width]`.

mod cases;
mod cpu;

use coli_plugin_api::describe::Keep;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Access, StateId, Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};
use coli_plugin_api::{choice, params};

use crate::contract::{Case, CpuCall, Op, OpFacts, facts};

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
        /// All.
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
}

impl AttendParams {
    /// Causal attention over a state whose row is K of all heads, then V of all heads.
    pub fn causal(heads: u32, kv_heads: u32, k_width: u32, v_width: u32, scale: f32) -> Self {
        let v_col0 = kv_heads.saturating_mul(k_width);
        let first = AttendSource { kind: AttendKind::Rows, mask: AttendMask::Causal, v_col0, ..AttendSource::NONE };
        Self { heads, kv_heads, k_width, v_width, scale, first, second: AttendSource::NONE, sink: false }
    }

    /// The same over a state of any stride: a row sees the groups that are complete at its position.
    pub fn complete(heads: u32, kv_heads: u32, k_width: u32, v_width: u32, scale: f32) -> Self {
        let mut params = Self::causal(heads, kv_heads, k_width, v_width, scale);
        params.first.mask = AttendMask::Complete;
        params
    }
}

/// Records attention over one rows state.
pub fn record(r: &mut Recorder, q: Operand, state: StateId, params: AttendParams) -> Operand {
    let width = params.heads.saturating_mul(params.v_width);
    let [y] = r.op(OpCall {
        name: "attend@1",
        ins: &[q],
        outs: &[ValueDef { domain: q.domain, ty: Ty::F32, width }],
        states: &[(state, Access::Read)],
        params: params.encode(),
        ..OpCall::default()
    });
    y
}

/// The prepared op.
pub struct Attend {
    params: AttendParams,
    /// Positions of a row of the state.
    stride: u32,
}

impl Op for Attend {
    const NAME: &'static str = "attend";
    const VERSION: u16 = 1;
    type Params = AttendParams;

    fn prepare(params: AttendParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        refuse_unbuilt(&params)?;
        facts.counts(1..=1, 1, 0..=0, 1, 0)?;
        facts.one_domain()?;
        let (heads, kv_heads) = (u64::from(params.heads), u64::from(params.kv_heads));
        if !heads.is_multiple_of(kv_heads) {
            return Err(format!("parameter `kv_heads`: {kv_heads} does not divide {heads} heads"));
        }
        let (k_width, v_width) = (u64::from(params.k_width), u64::from(params.v_width));
        facts::expect("input 0: width", u64::from(facts.input(0, Ty::F32)?.width), heads * k_width)?;
        facts.output(0, Ty::F32, heads * v_width)?;
        let (parts, stride, keep) = facts.rows_state(0, Access::Read)?;
        let mask = params.first.mask;
        if mask == AttendMask::Causal && stride != 1 {
            return Err(format!("state 0: stride {stride} with mask {}, expected 1", mask.text()));
        }
        if let Keep::Last(n) = keep {
            return Err(format!("state 0: keeps the last {n} with mask {}, which sees all", mask.text()));
        }
        let row: u64 = parts.iter().map(|part| u64::from(part.width)).sum();
        for (what, col0, width) in [("K", params.first.k_col0, k_width), ("V", params.first.v_col0, v_width)] {
            let end = u64::from(col0) + kv_heads * width;
            if end > row {
                return Err(format!("{what}: columns {col0}..{end} of a state row of {row}"));
            }
        }
        Ok(Self { params, stride })
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        cpu::run(&self.params, self.stride, call)
    }

    fn cases() -> Vec<Case> {
        cases::all()
    }
}

fn refuse_unbuilt(params: &AttendParams) -> Result<(), String> {
    if params.first.kind != AttendKind::Rows {
        return facts::not_implemented(format!("source {}", params.first.kind.text()));
    }
    if params.second.kind != AttendKind::None {
        return facts::not_implemented("a second source");
    }
    if params.second != AttendSource::NONE {
        return Err("parameter `second`: numbers for a source of kind none".into());
    }
    if !matches!(params.first.mask, AttendMask::Causal | AttendMask::Complete) {
        return facts::not_implemented(format!("mask {}", params.first.mask.text()));
    }
    if params.first.window != 0 {
        return Err(format!("parameter `window`: {} with mask {}", params.first.window, params.first.mask.text()));
    }
    if params.sink {
        return facts::not_implemented("sinks");
    }
    Ok(())
}
