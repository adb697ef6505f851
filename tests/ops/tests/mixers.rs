//! What only a run can show of the ops that read their conversation's past: rows that are missing, and numbers that are not finite.
#![allow(clippy::unwrap_used)]

use coli_plugin_api::describe::Keep;
use coli_shaders::contract::case_file::CaseBuilder;
use coli_shaders::contract::{Case, Data};
use coli_shaders::formats::Format;
use coli_shaders::ops::append;
use coli_shaders::ops::delta::{self, DeltaParams};
use coli_shaders::ops::index_topk::{self, IndexTopkParams};
use coli_shaders::ops::pool::{self, PoolParams};
use coli_shaders::ops::short_conv::{self, ShortConvParams};
use coli_test_common::cases::run;

/// A conversation that begins here has no rows before.
const START: u32 = 64;

fn rows(b: &mut CaseBuilder, start: u32, count: u32) {
    b.rows(&(start..start + count).map(|pos| (0, pos)).collect::<Vec<_>>());
}

fn results(case: &Case) -> Result<Vec<f32>, String> {
    let Data::F32(numbers) = run(case, std::slice::from_ref(&(0..case.rows.len())))?.remove("y").unwrap() else { panic!("not numbers") };
    Ok(numbers)
}

fn convolution(start: u32, x: &[f32]) -> Case {
    let mut b = CaseBuilder::by_hand("short_conv", "-");
    rows(&mut b, start, x.len() as u32);
    let operand = b.given("x", 1, x);
    let w = b.given_vector("w", Format::F32, &[1.0, 2.0, 4.0]);
    let state = b.kept_state(&[1], 1, Keep::Last(2));
    let y = short_conv::record(b.recorder(), operand, w, state, ShortConvParams { taps: 3, ..ShortConvParams::silu(3) });
    b.expect("y", y, x, 0.0);
    b.finish()
}

#[test]
fn a_convolution_says_which_row_is_missing() {
    let fault = results(&convolution(START, &[1.0])).unwrap_err();
    assert!(fault.contains("short_conv@1: the row at position 62 of conversation 0 is not stored"), "{fault}");
    assert!(results(&convolution(0, &[1.0, 1.0])).is_ok());
}

#[test]
fn a_convolution_passes_on_what_is_not_a_number() {
    let y = results(&convolution(0, &[1.0, f32::NAN, 1.0, 1.0, 1.0])).unwrap();
    assert_eq!(y.iter().map(|y| y.is_nan()).collect::<Vec<_>>(), [false, true, true, true, false]);
}

fn groups(start: u32, count: u32, overlap: bool, gate: f32) -> Case {
    let mut b = CaseBuilder::by_hand("pool", "-");
    rows(&mut b, start, count);
    let kv = b.given("kv", 2, &vec![3.0; 2 * count as usize]);
    let gate = b.given("gate", 2, &vec![gate; 2 * count as usize]);
    let state = b.kept_state(&[2, 2], 1, Keep::Last(7));
    let y = pool::record(b.recorder(), kv, Some(gate), None, state, PoolParams::softmax(4, overlap));
    b.expect("y", y, &[], 0.0);
    b.finish()
}

#[test]
fn a_group_says_which_row_is_missing() {
    let fault = results(&groups(START, 4, true, 0.0)).unwrap_err();
    assert!(fault.contains("pool@1: the row at position 60 of conversation 0 is not stored"), "{fault}");
    let fault = results(&groups(START + 1, 3, true, 0.0)).unwrap_err();
    assert!(fault.contains("pool@1: the row at position 60 of conversation 0 is not stored"), "{fault}");
    assert_eq!(results(&groups(START, 4, false, 0.0)).unwrap(), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 3.0]);
}

#[test]
fn gates_that_are_not_finite_give_what_is_not_a_number() {
    for gate in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let y = results(&groups(0, 4, true, gate)).unwrap();
        assert!(y[..3] == [0.0; 3] && y[3].is_nan(), "{gate}: {y:?}");
    }
}

fn choice(start: u32, q: &[f32], keys: &[f32], w: Option<&[f32]>) -> Result<Vec<i32>, String> {
    let mut b = CaseBuilder::by_hand("index_topk", "-");
    rows(&mut b, start, q.len() as u32);
    let (q, keys) = (b.given("q", 1, q), b.given("keys", 1, keys));
    let w = w.map(|w| b.given("w", 1, w));
    let state = b.rows_state(&[1]);
    append::record(b.recorder(), &[keys], state);
    let (list, _) = index_topk::record(b.recorder(), q, w, None, state, IndexTopkParams::rows(1, 2, 1.0, 1));
    b.recorder().port_out("list", list);
    let mut case = b.finish();
    let data = Data::I32(vec![]);
    case.expected.push(coli_shaders::contract::Expected { port: "list".into(), data, tolerance: 0.0 });
    match run(&case, std::slice::from_ref(&(0..case.rows.len())))?.remove("list") {
        Some(Data::I32(list)) => Ok(list),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_choice_says_which_row_is_missing() {
    let fault = choice(START, &[1.0], &[1.0], None).unwrap_err();
    assert!(fault.contains("index_topk@1: row 0 of conversation 0 was never stored"), "{fault}");
}

#[test]
fn scores_that_are_not_finite_are_an_error() {
    assert_eq!(choice(0, &[1.0; 3], &[1.0, 3.0, 2.0], None).unwrap(), [0, -1, 0, 1, 1, 2]);
    for bad in [f32::NAN, f32::INFINITY, -f32::NAN] {
        let fault = choice(0, &[1.0; 3], &[1.0, bad, 2.0], None).unwrap_err();
        assert!(fault.contains("the score of row 1 of the index is not finite in row 1 of the step"), "{bad}: {fault}");
        let fault = choice(0, &[1.0, 1.0, bad], &[1.0; 3], None).unwrap_err();
        assert!(fault.contains("the score of row 0 of the index is not finite in row 2 of the step"), "{bad}: {fault}");
        let fault = choice(0, &[1.0; 3], &[1.0; 3], Some(&[1.0, 1.0, bad])).unwrap_err();
        assert!(fault.contains("the score of row 0 of the index is not finite in row 2 of the step"), "{bad}: {fault}");
    }
    // What relu makes zero of is finite.
    assert_eq!(choice(0, &[1.0; 2], &[f32::NEG_INFINITY, 1.0], None).unwrap(), [0, -1, 0, 1]);
}

#[test]
fn a_rule_passes_on_what_is_not_a_number() {
    let mut b = CaseBuilder::by_hand("delta", "-");
    rows(&mut b, START, 3);
    let one = [1.0; 3];
    let (q, k) = (b.given("q", 1, &one), b.given("k", 1, &one));
    let v = b.given("v", 2, &[1.0, 1.0, f32::NAN, 1.0, 1.0, 1.0]);
    let (gate, beta) = (b.given("gate", 1, &[f32::NEG_INFINITY; 3]), b.given("beta", 1, &[f32::INFINITY; 3]));
    let (a, dt) = (b.given_vector("a", Format::F32, &[0.0]), b.given_vector("dt", Format::F32, &[0.0]));
    let state = b.accumulator_state(&[1, 1, 2]);
    let y = delta::record(b.recorder(), q, k, v, gate, beta, a, dt, state, DeltaParams::softplus(1));
    b.expect("y", y, &[], 0.0);
    let y = results(&b.finish()).unwrap();
    assert_eq!((&y[..2], y[2].is_nan(), y[3], y[4].is_nan(), y[5]), (&[1.0, 1.0][..], true, 1.0, true, 1.0));
}
