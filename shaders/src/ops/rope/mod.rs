//! `rope@1`: turns pairs of columns of each head by an angle that grows with the row's position.
//!
//! Over the columns `start..end` of each head, pair `i` of `n = (end - start) / 2` turns by `a = p * theta^(-i / n)`:
//! `(u, v) -> (u cos a - v sin a, v cos a + u sin a)`. half pairs columns `(i, i + n)`, pair `(2i, 2i + 1)`. Other columns pass.
//! Angles are computed in f64 and their cosines and sines rounded to f32 once ([`angles::Angles`]); both executors read that table.
//!
//! Operands: x `[T, H * head_width]`; positions `[T, axes]` i32. Outputs: y like x.

pub mod angles;
mod cases;
mod cpu;

use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};
use coli_plugin_api::{choice, params};

use crate::contract::{Case, CpuCall, Op, OpFacts, facts};

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
    type Params = RopeParams;

    fn prepare(params: RopeParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        facts.counts(2..=2, 1, 0..=0, 0, 0)?;
        facts.one_domain()?;
        if params.scaling != RopeScaling::None || params.factor != 1.0 || params.magnitude != 1.0 {
            return facts::not_implemented(format!(
                "scaling {} by {} with magnitude {}",
                params.scaling.text(),
                params.factor,
                params.magnitude
            ));
        }
        if params.context_original != 0 || params.beta_fast != 0.0 || params.beta_slow != 0.0 {
            return Err(format!(
                "parameters `context_original`, `beta_fast`, `beta_slow`: numbers for yarn with scaling {}",
                params.scaling.text()
            ));
        }
        if params.axes != 1 {
            return facts::not_implemented(format!("{} axes", params.axes));
        }
        if params.inverse || params.group != 1 {
            return facts::not_implemented("inverse and grouped positions");
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
        Ok(Self { params, angles: angles::Angles::new(params.theta, (end - start) / 2) })
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        cpu::run(&self.params, &self.angles, call);
        Ok(())
    }

    fn cases() -> Vec<Case> {
        cases::all()
    }
}
