//! What `attend@1` refuses, before a run and within one.

use std::collections::BTreeMap;

use coli_plugin_api::describe::{Keep, StateKind};
use coli_plugin_api::program::{Access, WeightId};

use super::{Attend, AttendKind, AttendMask, AttendParams, AttendSource};
use crate::contract::{Alone, CaseWeights, Columns, ColumnsMut, CpuCall, Op, OpFacts, RowAt, StateAccess, ValueFacts};
use crate::formats::Format;
use crate::ops::refusals::{Refusal, Use, all_refused, ids, numbers, rows};

/// Four heads over one K/V head of 6 columns of which 4 are V; a window of 3, then a list into rows of stride 2; sinks.
fn valid() -> (AttendParams, Use) {
    let params = AttendParams::over(AttendSource::rows_window(3), 4, 1, 6, 4, 0.5).and(AttendSource::list().columns(1, 1));
    let states = vec![(rows(&[4, 2], 1, Keep::Last(2)), Access::Read), (rows(&[7], 2, Keep::All), Access::Read)];
    let using = Use { ins: vec![numbers(24), ids(5)], outs: vec![numbers(16)], weights: vec![(1, 4)], states };
    (AttendParams { sink: true, ..params }, using)
}

fn state(using: &mut Use, index: usize, new_stride: u32, new_keep: Keep) {
    if let StateKind::Rows { stride, keep, .. } = &mut using.states[index].0 {
        (*stride, *keep) = (new_stride, new_keep);
    }
}

#[test]
fn sources_that_are_not_built_or_contradict_themselves_are_refused() {
    let changes: &[Refusal<AttendParams>] = &[
        (|p, _| p.first.kind = AttendKind::None, "source none not implemented"),
        (|p, _| p.first.kind = AttendKind::Values, "source values not implemented"),
        (|p, _| p.second.kind = AttendKind::Values, "second source: source values not implemented"),
        (|p, _| p.second.kind = AttendKind::None, "parameter `second`: numbers for a source of kind none"),
        (|p, _| p.first.mask = AttendMask::Distance, "source rows with mask distance not implemented"),
        (|p, _| p.first.mask = AttendMask::All, "source rows with mask all not implemented"),
        (|p, _| p.first.kind = AttendKind::List, "parameter `mask`: window with source list, expected all: the list is the mask"),
        (|p, _| p.second.mask = AttendMask::Causal, "second source: parameter `mask`: causal with source list"),
        (|p, _| p.first.window = 0, "parameter `window`: 0 with mask window"),
        (|p, _| p.first.mask = AttendMask::Complete, "parameter `window`: 3 with mask complete"),
        (|p, _| p.second.window = 1, "second source: parameter `window`: 1 with mask all"),
    ];
    all_refused::<Attend>(&valid(), changes);
}

#[test]
fn counts_widths_and_columns_that_do_not_fit_are_refused() {
    let changes: &[Refusal<AttendParams>] = &[
        (|_, u| drop(u.ins.pop()), "1 inputs, expected 2"),
        (|_, u| u.ins.push(ids(5)), "3 inputs, expected 2"),
        (|p, _| p.sink = false, "1 weights, expected 0"),
        (|_, u| u.weights.clear(), "0 weights, expected 1"),
        (|_, u| u.weights[0] = (1, 3), "weight 0 is 1x3, expected 1x4"),
        (|_, u| u.weights[0] = (4, 1), "weight 0 is 4x1, expected 1x4"),
        (|_, u| drop(u.states.pop()), "1 states, expected 2"),
        (|p, _| p.kv_heads = 3, "parameter `kv_heads`: 3 does not divide 4 heads"),
        (|_, u| u.ins[0] = numbers(25), "input 0: width is 25, expected 24"),
        (|_, u| u.ins[1] = numbers(5), "input 1: type F32, expected I32"),
        (|_, u| u.outs[0] = numbers(24), "output 0: width is 24, expected 16"),
        (|p, _| p.first.k_col0 = 1, "K: columns 1..7 of a state row of 6, state 0"),
        (|p, _| p.first.v_col0 = 3, "V: columns 3..7 of a state row of 6, state 0"),
        (|p, _| p.second.k_col0 = u32::MAX, "K: columns 4294967295..4294967301 of a state row of 7, state 1"),
        (|p, _| p.second.v_col0 = 4, "V: columns 4..8 of a state row of 7, state 1"),
    ];
    all_refused::<Attend>(&valid(), changes);
}

#[test]
fn states_that_lack_what_is_seen_are_refused() {
    let changes: &[Refusal<AttendParams>] = &[
        (|_, u| state(u, 0, 1, Keep::Last(1)), "state 0: keeps the last 1 with a window of 3, expected at least 2"),
        (|p, _| p.first.window = u32::MAX, "state 0: keeps the last 2 with a window of 4294967295, expected at least 4294967294"),
        (|_, u| state(u, 0, 2, Keep::All), "state 0: stride 2 with mask window, expected 1"),
        (|_, u| state(u, 1, 2, Keep::Last(9)), "state 1: keeps the last 9 with a list, which sees all"),
        (|_, u| state(u, 1, 0, Keep::All), "state 1: stride 0, expected at least 1"),
        (|p, _| p.first = AttendSource::rows_causal(), "state 0: keeps the last 2 with mask causal, which sees all"),
        (|p, _| p.first = AttendSource::rows_complete(), "state 0: keeps the last 2 with mask complete, which sees all"),
        (|p, _| p.second = AttendSource::rows_causal(), "2 inputs, expected 1"),
        (|_, u| u.states[1].1 = Access::Append, "state 1: access Append, expected Read"),
        (|_, u| u.states[0].0 = StateKind::Accumulator { shape: vec![6] }, "state 0: an accumulator, expected rows"),
    ];
    all_refused::<Attend>(&valid(), changes);
    let (params, mut using) = valid();
    for keep in [Keep::All, Keep::Last(3), Keep::Last(u32::MAX)] {
        state(&mut using, 0, 1, keep);
        assert_eq!(using.prepare::<Attend>(&params), Ok(()), "{keep:?}");
    }
}

/// States of one conversation, by state and index.
#[derive(Default)]
struct Rows(BTreeMap<(usize, u32), Vec<f32>>);

impl StateAccess for Rows {
    fn row(&self, state: usize, conv: u32, index: u32) -> Option<&[f32]> {
        if conv == 0 { self.0.get(&(state, index)).map(Vec::as_slice) } else { None }
    }

    fn row_mut(&mut self, _: usize, _: u32, _: u32) -> Option<&mut [f32]> {
        None
    }
}

/// One row at a position: one head of one column, K the first and V the second column of a row.
fn run(params: AttendParams, strides: &[u32], rows_of: Rows, pos: u32, q: f32, lists: &[&[i32]]) -> Result<f32, String> {
    let states: Vec<_> = strides.iter().map(|stride| (rows(&[1, 1], *stride, Keep::All), Access::Read)).collect();
    let values: Vec<_> = std::iter::once(numbers(1)).chain(lists.iter().map(|list| ids(list.len() as u32))).collect();
    let ins: Vec<_> = values.iter().map(|(domain, ty, width)| ValueFacts { domain, ty: *ty, width: *width }).collect();
    let kinds: Vec<_> = states.iter().map(|(kind, access)| (kind, *access)).collect();
    let weight = coli_plugin_api::describe::WeightRef { id: WeightId(0), rows: 1, cols: 1 };
    let sinks = if params.sink { std::slice::from_ref(&weight) } else { &[] };
    let op = Attend::prepare(params, &OpFacts { params: &[], ins: &ins, outs: &ins[..1], weights: sinks, states: &kinds, groups: &[] })?;
    let mut store = CaseWeights::default();
    store.push(Format::F32, 1, 1, &[0.0]);
    let words: Vec<Vec<u32>> =
        std::iter::once(vec![q.to_bits()]).chain(lists.iter().map(|list| list.iter().map(|entry| *entry as u32).collect())).collect();
    let columns: Vec<_> = words.iter().map(|words| Columns::new(words, words.len(), 0, words.len())).collect();
    let mut y = [7u32];
    let (mut outs, mut states) = ([ColumnsMut::new(&mut y, 1)], rows_of);
    op.cpu(&mut CpuCall {
        rows: &[RowAt { conv: 0, pos, step_row: 0 }],
        ins: &columns,
        outs: &mut outs,
        weights: &[WeightId(0)],
        groups: &[],
        store: &store,
        states: &mut states,
        sampling: &[],
        scratch: &mut vec![f32::NAN; 3],
        team: &Alone,
        fast: None,
    })?;
    Ok(f32::from_bits(y[0]))
}

fn one(source: AttendSource) -> AttendParams {
    AttendParams::over(source.columns(0, 1), 1, 1, 1, 1, 1.0)
}

/// Rows of state 0 whose V is their index, and whose K is 0.
fn stored(indices: std::ops::Range<u32>) -> Rows {
    Rows(indices.map(|index| ((0, index), vec![0.0, index as f32])).collect())
}

#[test]
fn a_window_needs_its_rows_and_no_others() {
    let window = |n: u32, rows: Rows, pos: u32| run(one(AttendSource::rows_window(n)), &[1], rows, pos, 1.0, &[]);
    assert_eq!(window(3, stored(5..8), 7), Ok(6.0));
    assert_eq!(window(3, stored(0..2), 1), Ok(0.5));
    assert_eq!(window(u32::MAX, stored(0..2), 1), Ok(0.5));
    assert_eq!(window(1, stored(7..8), 7), Ok(7.0));
    assert_eq!(window(3, stored(6..8), 7), Err("source 0: row 5 of conversation 0 was never stored or is gone".into()));
    assert_eq!(window(2, stored(u32::MAX - 1..u32::MAX), u32::MAX - 1).unwrap_err().split(':').next(), Some("source 0"));
}

#[test]
fn the_last_position_there_can_be_overflows_nothing() {
    let mut rows = stored(u32::MAX - 1..u32::MAX);
    rows.0.insert((0, u32::MAX), vec![0.0, 1.0]);
    assert!(run(one(AttendSource::rows_window(2)), &[1], rows, u32::MAX, 1.0, &[]).is_ok());
    let fault = run(one(AttendSource::rows_complete()), &[u32::MAX], stored(0..0), u32::MAX, 1.0, &[]);
    assert_eq!(fault, Err("source 0: row 0 of conversation 0 was never stored or is gone".into()));
}

#[test]
fn a_list_names_stored_rows_that_are_complete() {
    let list = |list: &[i32], pos: u32| run(one(AttendSource::list()), &[3], stored(0..9), pos, 1.0, &[list]);
    assert_eq!(list(&[0, -1, 2, -1], 8), Ok(1.0));
    assert_eq!(list(&[-1, -1], 8), Ok(0.0));
    assert_eq!(list(&[0, 3], 10), Err("source 0: row 3 in a list is not complete at position 10".into()));
    assert_eq!(list(&[0, 3], 11), Ok(1.5));
    assert_eq!(list(&[0], 1), Err("source 0: row 0 in a list is not complete at position 1".into()));
    assert_eq!(list(&[9], 29), Err("source 0: row 9 of conversation 0 was never stored or is gone".into()));
    assert_eq!(list(&[-2], 8), Err("source 0: -2 in a list is neither a row nor -1".into()));
    assert_eq!(list(&[i32::MIN], 8), Err("source 0: -2147483648 in a list is neither a row nor -1".into()));
    assert_eq!(list(&[i32::MAX], 8), Err("source 0: row 2147483647 in a list is not complete at position 8".into()));
}

/// A row that sees nothing gives 0, also with a sink; a sink of 0 weighs as much as a score of 0.
#[test]
fn sinks_share_the_softmax_and_have_no_value() {
    let sunk = |pos: u32, q: f32| run(AttendParams { sink: true, ..one(AttendSource::rows_complete()) }, &[2], stored(0..9), pos, q, &[]);
    assert_eq!(sunk(0, 1.0), Ok(0.0));
    assert_eq!(sunk(5, 1.0), Ok(3.0 / 4.0));
    assert_eq!(run(one(AttendSource::rows_complete()), &[2], stored(0..9), 0, 1.0, &[]), Ok(0.0));
}

/// What is not a number stays so, and nothing panics.
#[test]
fn not_a_number_in_a_score_gives_not_a_number() {
    for q in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for sink in [false, true] {
            let params = AttendParams { sink, ..one(AttendSource::rows_causal()) };
            assert!(run(params, &[1], stored(0..3), 2, q, &[]).is_ok_and(f32::is_nan), "{q} {sink}");
        }
    }
}

#[test]
fn two_lists_are_two_inputs_in_order() {
    let params = one(AttendSource::list()).and(AttendSource::list().columns(0, 1));
    let mut rows = stored(0..4);
    rows.0.insert((1, 0), vec![0.0, 60.0]);
    assert_eq!(run(params, &[1, 4], rows, 3, 1.0, &[&[1, 2], &[0]]), Ok(21.0));
}
