//! Ops that exist in tests only, and a program made of them.
//!
//! Each adds what it remembers to its operand and keeps the fraction, so that numbers stay in [0, 1) and every bit of every remembered
//! row shows. The states stand one after the other: what the first one remembers goes into the rows of the second.

use coli_plugin_api::codec;
use coli_plugin_api::describe::{Description, Keep, RowPart, SegmentName, State, StateKind, View, WeightRef};
use coli_plugin_api::params;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Access, Builtin, StateId, Ty, ValueDef, WeightId, ports};
use coli_plugin_api::recorder::{OpCall, Operand, Recorder};
use coli_shaders::contract::{Case, CpuCall, Op, OpEntry, OpFacts};
use coli_shaders::ops::{append, gather, take};

use crate::Program;
use crate::program::OpTable;

/// Numbers of a row.
pub(super) const WIDTH: u32 = 2;
/// Token ids; the last one makes the ops fail.
pub(super) const VOCAB: u32 = 12;
pub(super) const FAULT: u32 = VOCAB - 1;
/// What the table holds for [`FAULT`].
const POISON: f32 = 1e6;

params! {
    /// None.
    pub struct NoParams {}
}

/// The fraction of a number, but of the poison, which passes through.
fn fraction(number: f32) -> f32 {
    if number < POISON { number - number.floor() } else { number }
}

/// `test.rows@1`: y = x + the rows that the state's rule lets the row read, the own one included, each times a factor of its index.
struct ReadRows {
    stride: u32,
    keep: Keep,
}

impl Op for ReadRows {
    const NAME: &'static str = "test.rows";
    const VERSION: u16 = 1;
    type Params = NoParams;

    fn prepare(_: NoParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        facts.counts(1..=1, 1, 0..=0, 1, 0)?;
        let (_, stride, keep) = facts.rows_state(0, Access::Read)?;
        Ok(Self { stride, keep })
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        for (row, at) in call.rows.iter().enumerate() {
            let y = call.outs[0].row(row);
            y.copy_from_slice(call.ins[0].row(row));
            // The first row that stands at one of the last n positions, counted from its group's last position.
            let first = match self.keep {
                Keep::All => 0,
                Keep::Last(n) => (0..).find(|index| index * self.stride + self.stride - 1 + n >= at.pos).unwrap_or(0),
            };
            for index in (first..).take_while(|index| index * self.stride + self.stride - 1 <= at.pos) {
                let read = call.states.row(0, at.conv, index);
                let read = read.ok_or_else(|| format!("no row {index} of conversation {} at position {}", at.conv, at.pos))?;
                y.iter_mut().zip(read).for_each(|(y, read)| *y += read * (1.0 + 0.37 * index as f32));
            }
            y.iter_mut().for_each(|y| *y = fraction(*y));
        }
        Ok(())
    }

    fn cases() -> Vec<Case> {
        vec![]
    }
}

/// `test.accumulate@1`: S = 0.9 S + x, y = the fraction of x + S. Fails at the row of [`FAULT`], after the rows before it.
struct Accumulate;

impl Op for Accumulate {
    const NAME: &'static str = "test.accumulate";
    const VERSION: u16 = 1;
    type Params = NoParams;

    fn prepare(_: NoParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        facts.counts(1..=1, 1, 0..=0, 1, 0)?;
        match facts.accumulator_state(0)? {
            [rows, cols] if *rows * *cols == WIDTH => Ok(Self),
            shape => Err(format!("an accumulator of {shape:?}")),
        }
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        for (row, at) in call.rows.iter().enumerate() {
            let value = call.states.accumulator(0, at.conv, at.pos).ok_or("no accumulator")?;
            let (x, y) = (call.ins[0].row(row), call.outs[0].row(row));
            if x[0] >= POISON {
                return Err("the row of the fault".into());
            }
            for ((value, x), y) in value.iter_mut().zip(x).zip(y) {
                *value = 0.9 * *value + x;
                *y = fraction(x + *value);
            }
        }
        Ok(())
    }

    fn cases() -> Vec<Case> {
        vec![]
    }
}

/// `test.fail@1`: its operand, but fails at the row of [`FAULT`].
struct Fail;

impl Op for Fail {
    const NAME: &'static str = "test.fail";
    const VERSION: u16 = 1;
    type Params = NoParams;

    fn prepare(_: NoParams, facts: &OpFacts<'_>) -> Result<Self, String> {
        facts.counts(1..=1, 1, 0..=0, 0, 0)?;
        Ok(Self)
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> Result<(), String> {
        for row in 0..call.rows.len() {
            let x = call.ins[0].row(row);
            if x[0] >= POISON {
                return Err("the row of the fault".into());
            }
            call.outs[0].row(row).copy_from_slice(x);
        }
        Ok(())
    }

    fn cases() -> Vec<Case> {
        vec![]
    }
}

/// The library and these.
pub(super) fn table() -> OpTable {
    let mut table = OpTable::library();
    for entry in [OpEntry::of::<ReadRows>(), OpEntry::of::<Accumulate>(), OpEntry::of::<Fail>()] {
        assert!(table.add(&entry.id, Box::new(entry.prepare)));
    }
    table
}

/// A state of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Rows { stride: u32, keep: Keep },
    Accumulator,
}

impl Kind {
    fn described(self) -> StateKind {
        match self {
            Self::Rows { stride, keep } => StateKind::Rows { parts: vec![RowPart { width: WIDTH, may_round: false }], stride, keep },
            Self::Accumulator => StateKind::Accumulator { shape: vec![1, WIDTH] },
        }
    }
}

/// A description with a state of each kind, all in one layer.
pub(super) fn description(kinds: &[Kind], context_max: u32) -> Description {
    let segments = vec![SegmentName::Embed, SegmentName::Layer(0), SegmentName::Head];
    let mut d = Description { context_max, vocab: VOCAB, segments, ..Description::default() };
    d.matrix("table", VOCAB, WIDTH, View::tensor("table"));
    for (index, kind) in kinds.iter().enumerate() {
        d.state(State { role: format!("state.{index}"), owner: SegmentName::Layer(0), shared: false, kind: kind.described() });
    }
    d
}

/// Row of the table of each token.
pub(super) fn embedding(token: u32) -> [f32; WIDTH as usize] {
    if token == FAULT { [POISON, 0.0] } else { [0.5 + 0.037 * token as f32, 0.9 - 0.071 * token as f32] }
}

fn record(name: SegmentName, d: &Description, kinds: &[Kind]) -> Vec<u8> {
    let mut r = Recorder::default();
    let tokens = r.tokens();
    if name == SegmentName::Embed {
        let token = r.builtin(tokens, Builtin::Token, 1);
        let table = WeightRef { id: WeightId(0), rows: VOCAB, cols: WIDTH };
        let h = gather::record(&mut r, token, table);
        r.port_out(ports::STREAM, h);
    } else {
        let mut h = r.port_in(ports::STREAM, tokens, Ty::F32, WIDTH);
        if name == SegmentName::Head {
            let wanted = take::record(&mut r, h);
            r.port_out("y", wanted);
        } else {
            assert_eq!(d.states.len(), kinds.len());
            for (index, kind) in kinds.iter().enumerate() {
                h = remember(&mut r, h, *kind, StateId(index as u32));
            }
            let h = plain(&mut r, "test.fail@1", h, &[]);
            r.port_out(ports::STREAM, h);
        }
    }
    codec::encode(&r.finish().unwrap()).unwrap()
}

fn remember(r: &mut Recorder, h: Operand, kind: Kind, state: StateId) -> Operand {
    match kind {
        Kind::Rows { .. } => {
            append::record(r, &[h], state);
            plain(r, "test.rows@1", h, &[(state, Access::Read)])
        }
        Kind::Accumulator => plain(r, "test.accumulate@1", h, &[(state, Access::Update)]),
    }
}

/// An op without parameters from rows of the width to rows of the width.
pub(super) fn plain(r: &mut Recorder, name: &str, x: Operand, states: &[(StateId, Access)]) -> Operand {
    assert_eq!(NoParams::LEN, 0);
    let outs = [ValueDef { domain: x.domain, ty: Ty::F32, width: WIDTH }];
    let [y] = r.op(OpCall { name, ins: &[x], outs: &outs, states, params: NoParams {}.encode(), ..OpCall::default() });
    y
}

/// The program.
pub(super) fn build(kinds: &[Kind], context_max: u32) -> coli_base::Result<Program> {
    let d = description(kinds, context_max);
    let recordings: Vec<_> = d.segments.iter().map(|name| (*name, record(*name, &d, kinds))).collect();
    Program::build(&d, &recordings, &table(), &[])
}

/// The outputs of a token history by plain loops over plain lists, with no step, page or state.
pub(super) fn plain_loops(kinds: &[Kind], tokens: &[u32]) -> Vec<Vec<u32>> {
    let mut rows: Vec<[f32; WIDTH as usize]> = tokens.iter().map(|token| embedding(*token)).collect();
    for kind in kinds {
        let before = rows.clone();
        let mut value = [0.0f32; WIDTH as usize];
        for pos in 0..rows.len() {
            for column in 0..WIDTH as usize {
                let x = before[pos][column];
                rows[pos][column] = match *kind {
                    Kind::Accumulator => {
                        value[column] = 0.9 * value[column] + x;
                        fraction(x + value[column])
                    }
                    Kind::Rows { stride, keep } => {
                        let seen = |at: usize| match keep {
                            Keep::All => true,
                            Keep::Last(n) => at + n as usize >= pos,
                        };
                        let group = stride as usize;
                        let ends = (0..=pos).filter(|at| at % group == group - 1 && seen(*at));
                        fraction(ends.fold(x, |sum, at| sum + before[at][column] * (1.0 + 0.37 * (at / group) as f32)))
                    }
                };
            }
        }
    }
    rows.iter().map(|row| row.iter().map(|number| number.to_bits()).collect()).collect()
}
