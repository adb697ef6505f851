//! `rope@1`: turns pairs of columns of each head by an angle that grows with the row's position.
//!
//! Over the columns `start..end` of each head, pair `i` of `n = (end - start) / 2` turns by `a = p * f_i`, `f_i = theta^(-i / n)`:
//! `(u, v) -> m (u cos a - v sin a, v cos a + u sin a)`, where m is the magnitude. half pairs columns `(i, i + n)`, pair
//! `(2i, 2i + 1)`. Other columns pass. `p` is the position, rounded down to a multiple of `group`; inverse turns by `-a`.
//!
//! yarn stretches frequencies: `f_i / factor * r_i + f_i * (1 - r_i)` with the ramp `r_i = clamp((i - low) / (high - low), 0, 1)`, where
//! `c(b) = n ln(context_original / (2 pi b)) / ln(theta)`, `low = max(floor(c(beta_fast)), 0)`, `high = min(ceil(c(beta_slow)), 2n - 1)`,
//! and `high` is 0.001 more where both are equal.
//!
//! Angles are computed in f64 and their cosines and sines rounded to f32 once ([`angles::Angles`]); both executors read that table.
//!
//! Operands: x `[T, H * head_width]`; positions `[T, axes]` i32. Outputs: y like x.

pub mod angles;
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
    /// Which columns make a pair.
    pub enum RopeStyle {
        /// `(i, i + n)`.
        Half = 0, "half";
        /// `(2i, 2i + 1)`.
        Pair = 1, "pair";
    }
}

choice! {
    /// How frequencies are stretched for long contexts.
    pub enum RopeScaling {
        /// Not.
        None = 0, "none";
        /// By parts, with a ramp between two wavelengths.
        Yarn = 1, "yarn";
    }
}

params! {
    /// Parameters of `rope@1`.
    pub struct RopeParams {
        /// Which columns make a pair.
        style: RopeStyle,
        /// Columns of a head.
        head_width: u32 = 2..=65_536,
        /// The first column of a head that turns.
        start: u32,
        /// The column after the last one.
        end: u32,
        /// The base of the frequencies.
        theta: f64 = 1.0..=1e12,
        /// How frequencies are stretched.
        scaling: RopeScaling,
        /// By how much.
        factor: f32,
        /// The context that the model was first trained on, for `yarn`.
        context_original: u32,
        /// Turns within that context above which a frequency stays, for `yarn`.
        beta_fast: f32,
        /// Turns below which it is stretched whole, for `yarn`.
        beta_slow: f32,
        /// A factor of cosines and sines.
        magnitude: f32,
        /// Numbers of a position.
        axes: u32 = 1..=4,
        /// Turns the other way.
        inverse: bool,
        /// Positions are rounded down to a multiple of this.
        group: u32 = 1..=1_048_576,
    }
}

impl RopeParams {
    /// Turns the columns `start..end` of each head by the row's position.
    pub fn part(style: RopeStyle, head_width: u32, start: u32, end: u32, theta: f64) -> Self {
        Self { start, end, ..Self::whole(style, head_width, theta) }
    }

    /// The same with frequencies stretched for a longer context; the magnitude stays.
    pub fn yarn(self, factor: f32, context_original: u32, beta_fast: f32, beta_slow: f32) -> Self {
        Self { scaling: RopeScaling::Yarn, factor, context_original, beta_fast, beta_slow, ..self }
    }

    /// The same with another factor of cosines and sines.
    pub fn magnitude(self, magnitude: f32) -> Self {
        Self { magnitude, ..self }
    }

    /// The same turned the other way.
    pub fn inverse(self) -> Self {
        Self { inverse: true, ..self }
    }

    /// The same by positions rounded down to a multiple of `group`.
    pub fn grouped(self, group: u32) -> Self {
        Self { group, ..self }
    }

    /// Turns whole heads by the row's position.
    pub fn whole(style: RopeStyle, head_width: u32, theta: f64) -> Self {
        Self {
            style,
            head_width,
            start: 0,
            end: head_width,
            theta,
            scaling: RopeScaling::None,
            factor: 1.0,
            context_original: 0,
            beta_fast: 0.0,
            beta_slow: 0.0,
            magnitude: 1.0,
            axes: 1,
            inverse: false,
            group: 1,
        }
    }
}

/// Records `y = rope(x)` at rotary positions `rpos`.
pub fn record(r: &mut Recorder, x: Operand, rpos: Operand, params: RopeParams) -> Operand {
    let outs = [ValueDef { domain: x.domain, ty: Ty::F32, width: x.width() }];
    let [y] = r.op(OpCall { name: "rope@1", ins: &[x, rpos], outs: &outs, params: params.encode(), ..OpCall::default() });
    y
}

/// The prepared op.
pub struct Rope {
    params: RopeParams,
    angles: angles::Angles,
}

impl Op for Rope {
    const NAME: &'static str = "rope";
    const VERSION: u16 = 1;
    const ROWS_APART: bool = true;
    type Params = RopeParams;

    fn prepare(params: RopeParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        facts.counts(2..=2, 1, 0..=0, 0, 0)?;
        facts.one_domain()?;
        scaling(&params)?;
        if params.axes != 1 {
            return facts::not_implemented(format!("{} axes", params.axes));
        }
        let x = facts.input(0, Ty::F32)?;
        facts::expect("input 1: width", u64::from(facts.input(1, Ty::I32)?.width), u64::from(params.axes))?;
        facts.output(0, Ty::F32, u64::from(x.width))?;
        if !x.width.is_multiple_of(params.head_width) {
            return Err(format!("parameter `head_width`: {} does not divide a width of {}", params.head_width, x.width));
        }
        let (start, end) = (params.start, params.end);
        if start >= end || end > params.head_width || !(end - start).is_multiple_of(2) {
            return Err(format!("parameters `start`, `end`: {start}..{end} is not an even range inside a head of {}", params.head_width));
        }
        Ok(Self { angles: angles::Angles::new(&params), params })
    }

    #[inline(always)]
    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        cpu::run(&self.params, &self.angles, call);
        Ok(())
    }

    fn plan(&self, call: &PlanCall<'_>) -> Result<Plan, String> {
        plan::plan(&self.params, &self.angles, call)
    }

    fn kernels() -> &'static [KernelText] {
        plan::KERNELS
    }

    fn cases() -> Vec<Case> {
        cases::all()
    }
}

/// Checks the numbers of the scaling.
fn scaling(params: &RopeParams) -> Result<(), String> {
    let RopeParams { theta, factor, context_original, beta_fast, beta_slow, .. } = *params;
    let text = params.scaling.text();
    match params.scaling {
        RopeScaling::None if factor != 1.0 => Err(format!("parameter `factor`: {factor} with scaling {text}, expected 1")),
        RopeScaling::None if context_original != 0 || beta_fast != 0.0 || beta_slow != 0.0 => {
            Err(format!("parameters `context_original`, `beta_fast`, `beta_slow`: numbers for yarn with scaling {text}"))
        }
        RopeScaling::None => Ok(()),
        RopeScaling::Yarn if theta <= 1.0 => Err(format!("parameter `theta`: {theta} with scaling {text}, expected more than 1")),
        RopeScaling::Yarn if factor < 1.0 => Err(format!("parameter `factor`: {factor} with scaling {text}, expected at least 1")),
        RopeScaling::Yarn if context_original == 0 => {
            Err(format!("parameter `context_original`: 0 with scaling {text}, expected at least 1"))
        }
        RopeScaling::Yarn if beta_slow <= 0.0 || beta_fast < beta_slow => {
            Err(format!("parameters `beta_fast`, `beta_slow`: {beta_fast} and {beta_slow} with scaling {text}, expected fast >= slow > 0"))
        }
        RopeScaling::Yarn => Ok(()),
    }
}
