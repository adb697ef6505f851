//! `ew@1`: values combined number by number.
//!
//! add: `y = a + s * b`.
//!
//! Operands: a, b `[T, w]`. Outputs: y `[T, w]`.

mod cases;
mod cpu;

use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};
use coli_plugin_api::{choice, params};

use crate::contract::{Case, CpuCall, Op, OpFacts, facts};

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
        /// The factor `s`.
        scale: f32,
        /// How the later values are repeated.
        repeat: EwRepeat,
        /// Groups of a row.
        groups: u32 = 1..=1_048_576,
    }
}

/// Records `y = a + b`.
pub fn add(r: &mut Recorder, a: Operand, b: Operand) -> Operand {
    add_scaled(r, a, b, 1.0)
}

/// Records `y = a + scale * b`.
pub fn add_scaled(r: &mut Recorder, a: Operand, b: Operand, scale: f32) -> Operand {
    let params = EwParams { kind: EwKind::Add, scale, repeat: EwRepeat::None, groups: 1 };
    let outs = [ValueDef { domain: a.domain, ty: Ty::F32, width: a.width() }];
    let [y] = r.op(OpCall { name: "ew@1", ins: &[a, b], outs: &outs, params: params.encode(), ..OpCall::default() });
    y
}

/// The prepared op.
pub struct Ew {
    params: EwParams,
}

impl Op for Ew {
    const NAME: &'static str = "ew";
    const VERSION: u16 = 1;
    type Params = EwParams;

    fn prepare(params: EwParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        if params.kind != EwKind::Add {
            return facts::not_implemented(format!("kind {}", params.kind.text()));
        }
        if params.repeat != EwRepeat::None {
            return facts::not_implemented(format!("repeat {}", params.repeat.text()));
        }
        if params.groups != 1 {
            return Err(format!("parameter `groups`: {} with repeat {}", params.groups, params.repeat.text()));
        }
        facts.counts(2..=2, 1, 0..=0, 0, 0)?;
        facts.one_domain()?;
        let width = u64::from(facts.input(0, Ty::F32)?.width);
        facts::expect("input 1: width", u64::from(facts.input(1, Ty::F32)?.width), width)?;
        facts.output(0, Ty::F32, width)?;
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
