//! Tests of own ops behind the border, in one process: the guard, the facts, the call and the cases.

use super::*;
use coli_plugin_api::abi::LogFn;
use coli_plugin_api::boundary::new_object;
use coli_plugin_api::describe::{DescribeRequest, Description, Keep, RowPart, SegmentName, StateKind, View, WeightRef};
use coli_plugin_api::own_op::OwnOp;
use coli_plugin_api::params;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Domain, Ty, ValueDef, WeightId};
use coli_plugin_api::recorder::{OpCall, Recorder};
use coli_plugin_api::{Log, Plugin};
use coli_shaders::contract::case_file::CaseBuilder;
use coli_shaders::contract::{Alone, CaseWeights, Columns, ColumnsMut, Op, RowAt, ValueFacts, own};
use coli_shaders::formats::Format;

params! {
    /// Parameters of the tests' op.
    pub struct ShiftParams {
        /// 0 works, 1 is refused, 2 panics in `prepare`, 3 fails in a run, 4 panics there.
        act: u32 = 0..=4,
    }
}

/// `y = w * x + (the row stored before)`, and stores x.
struct Shift(u32);

impl Op for Shift {
    const NAME: &'static str = "test.shift";
    const VERSION: u16 = 2;
    type Params = ShiftParams;

    fn prepare(params: ShiftParams, facts: &OpFacts<'_>) -> std::result::Result<Self, String> {
        facts.counts(1..=1, 1, 1..=1, 1, 0)?;
        let width = facts.input(0, Ty::F32)?.width;
        facts.output(0, Ty::F32, u64::from(width))?;
        facts.vector(0, u64::from(width))?;
        assert!(params.act != 2, "boom");
        if params.act == 1 { Err("act 1\nis refused".into()) } else { Ok(Self(params.act)) }
    }

    fn cpu(&self, call: &mut CpuCall<'_>) -> std::result::Result<(), String> {
        assert!(self.0 != 4, "boom");
        if self.0 == 3 {
            return Err("row 0\nis wrong".into());
        }
        let weights = call.weight(0).decode();
        for (row, at) in call.rows.iter().enumerate() {
            let x = call.ins[0].row(row);
            let before = at.pos.checked_sub(1).and_then(|pos| call.states.row(0, at.conv, pos)).map(<[f32]>::to_vec);
            let before = before.unwrap_or_else(|| vec![0.0; x.len()]);
            call.states.row_mut(0, at.conv, at.pos).ok_or("no room")?.copy_from_slice(x);
            let y = call.outs[0].row(row);
            (0..x.len()).for_each(|column| y[column] = weights[column] * x[column] + before[column]);
        }
        Ok(())
    }

    fn cases() -> Vec<Case> {
        let mut b = CaseBuilder::by_hand("one", "by hand");
        let x = b.given("x", 1, &[0.1]);
        let outs = [ValueDef { domain: x.domain, ty: Ty::F32, width: 1 }];
        let call = OpCall { name: "test.shift@2", ins: &[x], outs: &outs, params: ShiftParams { act: 0 }.encode(), ..OpCall::default() };
        let [y] = b.recorder().op(call);
        b.expect("y", y, &[f32::MIN_POSITIVE / 4.0], 0.5);
        let mut case = b.finish();
        case.description.matrix("w", 1, 2, View::tensor("w"));
        case.weights.push(Format::BF16, 1, 2, &[0.5, -3.0]);
        vec![case]
    }
}

struct Brings;

impl Plugin for Brings {
    const ID: &'static str = "brings";
    const VERSION: &'static str = "0";

    fn open(_: &DescribeRequest, _: Log) -> std::result::Result<Self, String> {
        Err("no model here".into())
    }

    fn description(&self) -> Description {
        Description::default()
    }

    fn record(&self, _: SegmentName, _: &mut Recorder) -> std::result::Result<(), String> {
        Ok(())
    }

    fn own_ops() -> Vec<Box<dyn OwnOp>> {
        vec![own::<Shift>()]
    }
}

extern "C" fn silent(_: u8, _: abi_stable::std_types::RStr<'_>) {}

fn model() -> PluginModel {
    PluginModel::of("brings", new_object::<Brings>(LogFn { write: silent }).unwrap())
}

/// One row of 2 numbers for each position of one conversation.
#[derive(Default)]
struct Rows(Vec<Vec<f32>>);

impl StateAccess for Rows {
    fn row(&self, state: usize, _: u32, index: u32) -> Option<&[f32]> {
        assert_eq!(state, 0);
        self.0.get(index as usize).map(Vec::as_slice)
    }

    fn row_mut(&mut self, state: usize, _: u32, index: u32) -> Option<&mut [f32]> {
        assert_eq!(state, 0);
        assert!(index < 100, "a panic of the host's own");
        self.0.resize((index as usize + 1).max(self.0.len()), vec![0.0; 2]);
        self.0.get_mut(index as usize).map(Vec::as_mut_slice)
    }
}

/// Prepares the op with this act, access and so many states.
fn prepared(op: &str, act: u32, access: Access, states: usize) -> std::result::Result<Kernel, String> {
    let kind = StateKind::Rows { parts: vec![RowPart { width: 2, may_round: false }], stride: 1, keep: Keep::All };
    let value = ValueFacts { domain: &Domain::Tokens, ty: Ty::F32, width: 2 };
    model().own_op(op)(&OpFacts {
        params: &ShiftParams { act }.encode(),
        ins: &[value],
        outs: &[value],
        weights: &[WeightRef { id: WeightId(7), rows: 1, cols: 2 }],
        states: &vec![(&kind, access); states],
        groups: &[],
    })
}

/// Runs rows at these positions, whose operand is two columns of three; gives the outputs.
fn run(kernel: &Kernel, states: &mut Rows, rows: &[(u32, [f32; 2])]) -> std::result::Result<Vec<f32>, String> {
    let at: Vec<RowAt> = rows.iter().map(|(pos, _)| RowAt { conv: 0, pos: *pos, step_row: 0 }).collect();
    // Scratch memory is larger than the step.
    let mut words: Vec<u32> = rows.iter().flat_map(|(_, x)| [9.0, x[0], x[1]]).map(f32::to_bits).collect();
    words.extend([0; 3]);
    let mut out = vec![0; 2 * rows.len() + 2];
    let mut store = CaseWeights::default();
    (0..7).for_each(|_| store.push(Format::F32, 1, 1, &[0.0]));
    store.push(Format::F16, 1, 2, &[10.0, 100.0]);
    kernel(&mut CpuCall {
        rows: &at,
        ins: &[Columns::new(&words, 3, 1, 2)],
        outs: &mut [ColumnsMut::new(&mut out, 2)],
        weights: &[WeightId(7)],
        groups: &[],
        store: &store,
        states,
        sampling: &[],
        scratch: &mut vec![],
        team: &Alone,
        fast: None,
    })?;
    Ok(out[..2 * rows.len()].iter().map(|word| f32::from_bits(*word)).collect())
}

#[test]
fn an_op_behind_the_border_sees_rows_columns_weights_and_its_state() {
    let kernel = prepared("test.shift@2", 0, Access::Append, 1).unwrap();
    let mut states = Rows::default();
    assert_eq!(run(&kernel, &mut states, &[(0, [1.0, 2.0]), (1, [3.0, 4.0])]), Ok(vec![10.0, 200.0, 31.0, 402.0]));
    assert_eq!(run(&kernel, &mut states, &[(2, [5.0, 6.0])]), Ok(vec![53.0, 604.0]));
    assert_eq!(states.0, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
}

#[test]
fn what_is_wrong_before_a_run_is_one_line() {
    let fault = |op: &str, act, states| prepared(op, act, Access::Append, states).err().unwrap();
    assert_eq!(fault("test.shift@1", 0, 1), "this library has no op `test.shift@1`");
    assert_eq!(fault("test.shift@2", 1, 1), "act 1 is refused");
    assert!(fault("test.shift@2", 2, 1).starts_with("the plugin panicked in `op_prepare` at "));
    assert_eq!(fault("test.shift@2", 0, 0), "0 states, expected 1");
    assert_eq!(fault("test.shift@2", 0, 2), "2 states: an op of a plugin's own has at most one");
}

#[test]
fn an_error_or_a_panic_in_a_run_is_one_line_that_names_the_plugin() {
    let fault = |act, pos, access| {
        let kernel = prepared("test.shift@2", act, access, 1).unwrap();
        run(&kernel, &mut Rows::default(), &[(pos, [1.0, 2.0])]).unwrap_err()
    };
    assert_eq!(fault(3, 0, Access::Append), "plugin brings: row 0 is wrong");
    let text = fault(4, 0, Access::Append);
    assert!(text.starts_with("plugin brings: the plugin panicked in `op_run` at ") && text.ends_with(": boom"), "{text}");
    assert_eq!(fault(0, 0, Access::Read), "plugin brings: no room", "a state that is only read cannot be written");
    assert_eq!(fault(0, 100, Access::Append), "plugin brings: no room", "a panic of the host within the call ends nothing");
}

#[test]
fn cases_cross_the_border_bit_by_bit() {
    let (have, want) = (model().own_cases("test.shift@2").unwrap(), Shift::cases());
    assert_eq!(have.len(), 1);
    assert_eq!((&have[0].name, &have[0].rows, &have[0].recording), (&want[0].name, &want[0].rows, &want[0].recording));
    assert_eq!((&have[0].inputs, &have[0].description), (&want[0].inputs, &want[0].description));
    assert_eq!(have[0].expected[0].data, want[0].expected[0].data);
    let weight = coli_shaders::contract::WeightStore::weight(&have[0].weights, WeightId(0)).unwrap();
    assert_eq!(weight.decode(), [0.5, -3.0]);
    assert!(model().own_cases("test.other@1").unwrap_err().text.contains("no op `test.other@1`"));
}
