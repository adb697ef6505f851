//! `ew@1`: values combined number by number.
//!
//! add: `a + s * b`, mul: `a * b`, mul sigmoid: `a * sigmoid(b)`, mul silu: `a * silu(b)`, modulate: `a * (1 + b) + c`,
//! distance: `|a - b|`.
//!
//! b and c may be narrower than a: with G groups of `w / G` columns they have one number for each group (repeat group), or the columns of
//! one group (repeat column).
//!
//! Operands: a `[T, w]`, b, and c for modulate, `[T, w]`, `[T, G]` or `[T, w / G]`. Outputs: y `[T, w]`.

mod cases;
mod cpu;
mod plan;
#[cfg(test)]
mod tests;

use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};
use coli_plugin_api::{choice, params};

use crate::contract::{Case, CpuCall, Op, OpFacts, facts};
use crate::device::{KernelText, Plan, PlanCall};

choice! {
    /// How two or three values are combined.
    pub enum EwKind {
        /// `a + s * b`.
        Add = 0, "add";
        /// `a * b`.
        Mul = 1, "mul";
        /// `a * sigmoid(b)`.
        MulSigmoid = 2, "mul sigmoid";
        /// `a * silu(b)`.
        MulSilu = 3, "mul silu";
        /// `a * (1 + b) + c`.
        Modulate = 4, "modulate";
        /// `|a - b|`.
        Distance = 5, "distance";
    }
}

choice! {
    /// How the later values are repeated to the first one's width.
    pub enum EwRepeat {
        /// They have that width.
        None = 0, "none";
        /// One number a group of columns.
        Group = 1, "group";
        /// One group of columns, again for each group.
        Column = 2, "column";
    }
}

params! {
    /// Parameters of `ew@1`.
    pub struct EwParams {
        /// How the values are combined.
        kind: EwKind,
        /// The factor `s` of add; else 1.
        scale: f32,
        /// How the later values are repeated.
        repeat: EwRepeat,
        /// Groups of a row.
        groups: u32 = 1..=1_048_576,
    }
}

impl EwParams {
    /// Values of one width.
    pub fn of(kind: EwKind) -> Self {
        Self { kind, scale: 1.0, repeat: EwRepeat::None, groups: 1 }
    }

    /// The later values have one number for each of so many groups of columns.
    pub fn group(self, groups: u32) -> Self {
        Self { repeat: EwRepeat::Group, groups, ..self }
    }

    /// The later values have the columns of one of so many groups.
    pub fn column(self, groups: u32) -> Self {
        Self { repeat: EwRepeat::Column, groups, ..self }
    }
}

/// Records `y = a + b`.
pub fn add(r: &mut Recorder, a: Operand, b: Operand) -> Operand {
    add_scaled(r, a, b, 1.0)
}

/// Records `y = a + scale * b`.
pub fn add_scaled(r: &mut Recorder, a: Operand, b: Operand, scale: f32) -> Operand {
    with(r, &[a, b], EwParams { scale, ..EwParams::of(EwKind::Add) })
}

/// Records `y = a * b`.
pub fn mul(r: &mut Recorder, a: Operand, b: Operand) -> Operand {
    with(r, &[a, b], EwParams::of(EwKind::Mul))
}

/// Records `y = a * sigmoid(b)`.
pub fn mul_sigmoid(r: &mut Recorder, a: Operand, b: Operand) -> Operand {
    with(r, &[a, b], EwParams::of(EwKind::MulSigmoid))
}

/// Records `y = a * silu(b)`.
pub fn mul_silu(r: &mut Recorder, a: Operand, b: Operand) -> Operand {
    with(r, &[a, b], EwParams::of(EwKind::MulSilu))
}

/// Records any combination of two values, or three for modulate; y has the rows and width of the first one.
pub fn with(r: &mut Recorder, values: &[Operand], params: EwParams) -> Operand {
    let (domain, width) = values.first().map_or_else(|| (r.tokens(), 0), |first| (first.domain, first.width()));
    let outs = [ValueDef { domain, ty: Ty::F32, width }];
    let [y] = r.op(OpCall { name: "ew@1", ins: values, outs: &outs, params: params.encode(), ..OpCall::default() });
    y
}

/// The prepared op.
pub struct Ew {
    params: EwParams,
}

impl Op for Ew {
    const NAME: &'static str = "ew";
    const VERSION: u16 = 1;
    const ROWS_APART: bool = true;
    type Params = EwParams;

    fn prepare(params: EwParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        let EwParams { kind, scale, repeat, groups } = params;
        if kind != EwKind::Add && scale != 1.0 {
            return Err(format!("parameter `scale`: {scale} with kind {}, expected 1", kind.text()));
        }
        if repeat == EwRepeat::None && groups != 1 {
            return Err(format!("parameter `groups`: {groups} with repeat {}", repeat.text()));
        }
        let values = if kind == EwKind::Modulate { 3 } else { 2 };
        facts.counts(values..=values, 1, 0..=0, 0, 0)?;
        facts.one_domain()?;
        let width = facts.input(0, Ty::F32)?.width;
        if !width.is_multiple_of(groups) {
            return Err(format!("parameter `groups`: {groups} does not divide a width of {width}"));
        }
        let want = match repeat {
            EwRepeat::None => width,
            EwRepeat::Group => groups,
            EwRepeat::Column => width / groups,
        };
        for index in 1..values {
            facts::expect(&format!("input {index}: width"), u64::from(facts.input(index, Ty::F32)?.width), u64::from(want))?;
        }
        facts.output(0, Ty::F32, u64::from(width))?;
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
