//! `outside.turn@1`: a row turned by some places, times a vector.
//!
//! `y[c] = gain[c] * x[(c + turn) mod w]`. There is a device form: `turn.comp`, compiled once into `turn.spv`, so that nobody who builds
//! this plugin needs a compiler for it.
//!
//! Operands: x `[T, w]`. Weights: gain `[w]`. Outputs: y `[T, w]`.

use coli_plugin_api::describe::WeightRef;
use coli_plugin_api::own_op::{OwnDevice, OwnExtent, OwnForm};
use coli_plugin_api::params;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Ty, ValueDef};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};
use coli_shaders::contract::case_file::CaseBuilder;
use coli_shaders::contract::{Case, CpuCall, Op, OpFacts};
use coli_shaders::formats::Format;

params! {
    /// Parameters of `outside.turn@1`.
    pub struct TurnParams {
        /// Places.
        turn: u32 = 0..=4096,
    }
}

/// Records `y = turn(x)`.
pub fn record(r: &mut Recorder, x: Operand, gain: WeightRef, turn: u32) -> Operand {
    let [y] = r.op(OpCall {
        name: "outside.turn@1",
        ins: &[x],
        outs: &[ValueDef { domain: x.domain, ty: Ty::F32, width: x.width() }],
        weights: &[gain],
        params: TurnParams { turn }.encode(),
        ..OpCall::default()
    });
    y
}

/// The prepared op.
pub struct Turn {
    turn: u32,
    width: u32,
}

/// Invocations of a workgroup of the device form.
const WORKGROUP: u32 = 64;

impl Op for Turn {
    const NAME: &'static str = "outside.turn";
    const VERSION: u16 = 1;
    type Params = TurnParams;

    fn prepare(params: TurnParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        facts.counts(1..=1, 1, 1..=1, 0, 0)?;
        let width = facts.input(0, Ty::F32)?.width;
        facts.output(0, Ty::F32, u64::from(width))?;
        facts.vector(0, u64::from(width))?;
        Ok(Self { turn: params.turn, width })
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        let gain = call.weight(0).decode();
        for row in 0..call.rows.len() {
            let x = call.ins[0].row(row);
            let y = call.outs[0].row(row);
            for (column, (y, gain)) in y.iter_mut().zip(&gain).enumerate() {
                *y = gain * x[(column + self.turn as usize) % x.len()];
            }
        }
        Ok(())
    }

    fn own_device(&self) -> Result<Option<OwnDevice>, String> {
        let mut spirv = include_bytes!("turn.spv").to_vec();
        if cfg!(feature = "bad_device") {
            // What the tests of the host need: addresses, behind the header.
            let capability = [0x0002_0011u32, 5347].map(u32::to_le_bytes).concat();
            spirv.splice(20..20, capability);
        }
        let rows = if cfg!(feature = "wrong_device") { OwnExtent::Fixed(1) } else { OwnExtent::Rows { per: 1, times: 1 } };
        let grid = [OwnExtent::Fixed(self.width.div_ceil(WORKGROUP)), rows, OwnExtent::Fixed(1)];
        Ok(Some(OwnDevice { spirv, form: OwnForm { workgroup: WORKGROUP, grid } }))
    }

    fn cases() -> Vec<Case> {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        vec![
            case("by one", &[1.0, 10.0, 100.0], 1, &x, &[2.0, 30.0, 100.0, 5.0, 60.0, 400.0]),
            case("further than round", &[1.0, -1.0], 5, &x, &[2.0, -1.0, 4.0, -3.0, 6.0, -5.0]),
            wide(),
        ]
    }
}

/// More columns than a workgroup has invocations, and more rows than one.
fn wide() -> Case {
    let number = |row: u32, column: u32| (row * 7 + column) as f32;
    let (rows, width, turn) = (19, 150, 3);
    let gain: Vec<f32> = (0..width).map(|column| if column % 2 == 0 { 0.5 } else { -2.0 }).collect();
    let x: Vec<f32> = (0..rows).flat_map(|row| (0..width).map(move |column| number(row, column))).collect();
    let turned = |row: u32, column: u32| gain[column as usize] * number(row, (column + turn) % width);
    let y: Vec<f32> =
        (0..rows).flat_map(|row| (0..width).map(move |column| (row, column))).map(|(row, column)| turned(row, column)).collect();
    case("wide", &gain, turn, &x, &y)
}

fn case(name: &str, gain: &[f32], turn: u32, x: &[f32], y: &[f32]) -> Case {
    let mut b = CaseBuilder::by_hand(name, "worked by hand");
    let rows: Vec<(u32, u32)> = (0..(x.len() / gain.len()) as u32).map(|pos| (0, pos)).collect();
    b.rows(&rows);
    let x = b.given("x", gain.len(), x);
    let gain = b.given_vector("gain", Format::F32, gain);
    let out = record(b.recorder(), x, gain, turn);
    b.expect("y", out, y, 0.0);
    b.finish()
}
