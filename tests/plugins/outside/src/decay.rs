//! `outside.decay@1`: a sum over the conversation that forgets.
//!
//! `y_t = gain * sum over s <= t of decay^(t - s) * x_s`, and x_t is stored. Order: from the first position on, `acc = acc * decay + x_s`.
//!
//! Operands: x `[T, w]`. Weights: gain `[w]`. States: rows of w, append. Outputs: y `[T, w]`.

use coli_plugin_api::describe::WeightRef;
use coli_plugin_api::params;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Access, StateId, Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};
use coli_shaders::contract::case_file::CaseBuilder;
use coli_shaders::contract::{Case, CpuCall, Op, OpFacts};
use coli_shaders::formats::Format;

params! {
    /// Parameters of `outside.decay@1`.
    pub struct DecayParams {
        /// The share of a row that is left at the next position.
        decay: f32 = 0.0..=1.0,
    }
}

/// Records `y = decay(x)`.
pub fn record(r: &mut Recorder, x: Operand, gain: WeightRef, past: StateId, decay: f32) -> Operand {
    let [y] = r.op(OpCall {
        name: "outside.decay@1",
        ins: &[x],
        outs: &[ValueDef { domain: x.domain, ty: Ty::F32, width: x.width() }],
        weights: &[gain],
        states: &[(past, Access::Append)],
        params: DecayParams { decay }.encode(),
        ..OpCall::default()
    });
    y
}

/// The prepared op.
pub struct Decay(DecayParams);

impl Op for Decay {
    const NAME: &'static str = "outside.decay";
    const VERSION: u16 = 1;
    type Params = DecayParams;

    fn prepare(params: DecayParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        facts.counts(1..=1, 1, 1..=1, 1, 0)?;
        let width = facts.input(0, Ty::F32)?.width;
        facts.output(0, Ty::F32, u64::from(width))?;
        facts.vector(0, u64::from(width))?;
        let (parts, stride, _) = facts.rows_state(0, Access::Append)?;
        if stride != 1 || parts.iter().map(|part| part.width).sum::<u32>() != width {
            return Err(format!("state 0: expected one row of {width} for each position"));
        }
        Ok(Self(params))
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        let gain = call.weight(0).decode();
        for (row, at) in call.rows.iter().enumerate() {
            // What the tests of the host need: the cases stay below this position.
            assert!(!cfg!(feature = "panic_in_run") || at.pos < 5, "position {} is too far", at.pos);
            let x = call.ins[0].row(row);
            call.states.row_mut(0, at.conv, at.pos).ok_or("there is no room for the row")?.copy_from_slice(x);
            let y = call.outs[0].row(row);
            y.fill(0.0);
            for position in 0..=at.pos {
                let past = call.states.row(0, at.conv, position).ok_or_else(|| format!("position {position} is missing"))?;
                y.iter_mut().zip(past).for_each(|(sum, past)| *sum = *sum * self.0.decay + past);
            }
            y.iter_mut().zip(&gain).for_each(|(sum, gain)| *sum *= gain);
        }
        Ok(())
    }

    fn cases() -> Vec<Case> {
        vec![one_conversation(), two_conversations()]
    }
}

/// Halves are exact: 8, 8/2 + 4, 8/4 + 4/2 + 2 and so on; the first column is doubled.
fn one_conversation() -> Case {
    let last = if cfg!(feature = "wrong_case") { 4.0 } else { 4.5 };
    let x = [8.0, 1.0, 4.0, 0.0, 2.0, -2.0, 1.5, 0.0];
    let y = [16.0, 1.0, 16.0, 0.5, 12.0, -1.75, 2.0 * last, -0.875];
    case("halves", &[2.0, 1.0], 0.5, &[(0, 0), (0, 1), (0, 2), (0, 3)], &x, &y)
}

/// Rows of two conversations in one step; nothing is forgotten.
fn two_conversations() -> Case {
    let rows = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)];
    case("two conversations", &[1.0], 1.0, &rows, &[1.0, 2.0, 10.0, 20.0, 30.0], &[1.0, 3.0, 10.0, 30.0, 60.0])
}

fn case(name: &str, gain: &[f32], decay: f32, rows: &[(u32, u32)], x: &[f32], y: &[f32]) -> Case {
    let mut b = CaseBuilder::by_hand(name, "worked by hand");
    b.rows(rows);
    let x = b.given("x", gain.len(), x);
    let gain = b.given_vector("gain", Format::F32, gain);
    let past = b.rows_state(&[x.width()]);
    let out = record(b.recorder(), x, gain, past, decay);
    b.expect("y", out, y, 0.0);
    b.finish()
}
