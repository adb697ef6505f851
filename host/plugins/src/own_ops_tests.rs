//! Tests of own ops behind the border, in one process: the guard, the facts, the call and the cases.

use super::*;
use abi_stable::std_types::{RResult, RStr, RString};
use coli_plugin_api::abi::{LogFn, RawDevice};
use coli_plugin_api::boundary::{new_object, op_device};
use coli_plugin_api::describe::{DescribeRequest, Description, Keep, RowPart, SegmentName, StateKind, View, WeightRef};
use coli_plugin_api::own_op::{OwnDevice, OwnExtent, OwnForm, OwnOp};
use coli_plugin_api::params;
use coli_plugin_api::params::Params as _;
use coli_plugin_api::program::{Domain, Ty, ValueDef, WeightId};
use coli_plugin_api::recorder::{OpCall, Recorder};
use coli_plugin_api::{Log, Plugin};
use coli_shaders::contract::RowClass;
use coli_shaders::contract::case_file::CaseBuilder;
use coli_shaders::contract::{Alone, CaseWeights, Columns, ColumnsMut, Op, RowAt, ValueFacts, own};
use coli_shaders::device::{DeviceShape, ExpertShape, Operand, Plan, PlanCall, PlanFacts};
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

params! {
    /// Parameters of the other op of the tests.
    pub struct TwiceParams {
        /// What its device form is: 0 is one, 1 none, 2 an error, 3 a panic, 4 too large, 5 no grid.
        act: u32 = 0..=5,
    }
}

/// `y = 2 x`, of which there is a device form.
struct Twice(u32);

impl Op for Twice {
    const NAME: &'static str = "test.twice";
    const VERSION: u16 = 1;
    type Params = TwiceParams;

    fn prepare(params: TwiceParams, _: &OpFacts<'_>) -> std::result::Result<Self, String> {
        Ok(Self(params.act))
    }

    fn cpu(&self, _: &mut CpuCall<'_>) -> std::result::Result<(), String> {
        Ok(())
    }

    fn own_device(&self) -> std::result::Result<Option<OwnDevice>, String> {
        assert!(self.0 != 3, "boom");
        let spirv = vec![self.0 as u8; if self.0 == 4 { 2 << 20 } else { 8 }];
        let one = OwnExtent::Fixed(u32::from(self.0 != 5));
        match self.0 {
            1 => Ok(None),
            2 => Err("no\nform".into()),
            _ => Ok(Some(OwnDevice { spirv, form: OwnForm { workgroup: 64, grid: [OwnExtent::Rows { per: 2, times: 1 }, one, one] } })),
        }
    }

    fn cases() -> Vec<Case> {
        vec![]
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
        vec![own::<Shift>(), own::<Twice>()]
    }
}

extern "C" fn silent(_: u8, _: RStr<'_>) {}

extern "C" fn brings_device(op: RStr<'_>, facts: RStr<'_>) -> RResult<ROption<RawDevice>, RString> {
    op_device::<Brings>(op, facts)
}

fn model() -> PluginModel {
    PluginModel::of("brings", new_object::<Brings>(LogFn { write: silent }).unwrap(), Some(brings_device))
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
    kernel.run(&mut CpuCall {
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

struct NoExperts;

impl PlanFacts for NoExperts {
    fn experts(&self, _: coli_plugin_api::program::GroupId, _: u32) -> Option<ExpertShape> {
        None
    }
}

/// Prepares the op with a device form, and what plans it.
fn twice(model: &PluginModel, act: u32) -> Kernel {
    let value = ValueFacts { domain: &Domain::Tokens, ty: Ty::F32, width: 2 };
    let params = TwiceParams { act }.encode();
    model.own_op("test.twice@1")(&OpFacts { params: &params, ins: &[value], outs: &[value], weights: &[], states: &[], groups: &[] })
        .unwrap()
}

fn planned(kernel: &Kernel) -> std::result::Result<Plan, String> {
    let device = DeviceShape { subgroup: 8, invocations: 256, shared_bytes: 16 << 10, matrix: None, groups_x: 65_535 };
    kernel.plan(&PlanCall {
        class: RowClass::Step,
        cap: 4,
        context: 16,
        fast: false,
        device: &device,
        ins: &[Operand { width: 2 }],
        outs: &[Operand { width: 2 }],
        weights: &[],
        states: &[],
        groups: &[],
        facts: &NoExperts,
    })
}

#[test]
fn a_device_form_is_planned_while_the_host_says_so() {
    let (model, op) = (model(), "test.twice@1");
    let (kernel, devices) = (twice(&model, 0), model.own_devices().clone());
    assert!(model.may_bring_devices() && !devices.brought(op));
    assert_eq!(planned(&kernel).unwrap_err(), "has a device form that was not tried");
    assert!(devices.brought(op));
    devices.allow(op);
    let bound = planned(&kernel).unwrap().bound.unwrap();
    assert_eq!((bound.name.as_str(), &bound.spirv[..], bound.groups), (op, &[0; 8][..], [2, 1, 1]));
    assert_eq!((bound.params.as_slice(), bound.constants), (&[0; 4][..], [64, 8, 4]));
    devices.drop_form(op, "it gave other numbers");
    assert_eq!(planned(&kernel).unwrap_err(), "has no device form any more: it gave other numbers");
}

#[test]
fn what_is_no_device_form_leaves_the_op_on_the_cpu() {
    let model = model();
    model.own_devices().allow("test.twice@1");
    let fault = |act| planned(&twice(&model, act)).unwrap_err();
    assert_eq!(fault(1), "brings no device form");
    assert_eq!(fault(2), "its device form: no form");
    assert!(fault(3).starts_with("its device form: the plugin panicked in `op_device` at "), "{}", fault(3));
    assert!(fault(4).contains("2097152 and "), "{}", fault(4));
    assert!(fault(5).contains("asks for a grid of"), "{}", fault(5));
    // A library of minor version 0, and an op without a form.
    let older = PluginModel::of("brings", new_object::<Brings>(LogFn { write: silent }).unwrap(), None);
    assert!(!older.may_bring_devices());
    assert_eq!(planned(&twice(&older, 0)).unwrap_err(), "brings no device form");
    let shift = prepared("test.shift@2", 0, Access::Append, 1).unwrap();
    assert_eq!(planned(&shift).unwrap_err(), "brings no device form");
}
