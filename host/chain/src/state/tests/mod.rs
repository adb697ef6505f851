//! Rows, pages and accumulators, one by one. [`random`] tries what can be done to them in any order.

mod model;
mod ops;
mod random;

use coli_plugin_api::describe::{RowPart, SegmentName, State};
use coli_plugin_api::program::StateId;
use coli_shaders::contract::StateAccess;

use super::*;

const IDS: [StateId; 2] = [StateId(0), StateId(1)];

fn rows(width: u32, stride: u32, keep: Keep) -> StateKind {
    StateKind::Rows { parts: vec![RowPart { width, may_round: true }], stride, keep }
}

fn states(kinds: &[StateKind], page: u32) -> States {
    let state = |kind: &StateKind| State { role: "s".into(), owner: SegmentName::Layer(0), shared: false, kind: kind.clone() };
    let description = Description { states: kinds.iter().map(state).collect(), ..Description::default() };
    States::new(&description, page, 100)
}

fn two_widths(page: u32) -> States {
    states(&[rows(1, 1, Keep::All), rows(3, 1, Keep::All)], page)
}

/// A step that appends to state 0, whose rows stand at each position: `stamp` plus the position.
fn append(states: &mut States, conv: ConvId, to: u32, marked: &[u32], stamp: f32) {
    let from = states.len(conv).unwrap();
    states.begin(&[Grow { conv, len: to, tokens: vec![], marked: marked.to_vec() }]).unwrap();
    let mut op = OpStates { states, ids: &IDS[..1] };
    for pos in from..to {
        op.row_mut(0, conv.0, pos).unwrap().fill(stamp + pos as f32);
    }
    states.commit().unwrap();
}

fn read(states: &mut States, conv: ConvId, index: u32) -> Option<f32> {
    OpStates { states, ids: &IDS[..1] }.row(0, conv.0, index).map(|row| row[0])
}

/// No such memory is taken: what a description asks for is only counted.
#[test]
fn sizes_beyond_every_number_are_the_largest_one() {
    let wide = rows(u32::MAX, 1, Keep::All);
    assert_eq!(states(&vec![wide.clone(); 3], 64).conversation_bytes(u32::MAX), Bytes(u64::MAX));
    let many = [StateKind::Accumulator { shape: vec![u32::MAX, 1 << 29] }, StateKind::Accumulator { shape: vec![u32::MAX, 1 << 29] }];
    assert_eq!(states(&many, 64).conversation_bytes(1), Bytes(u64::MAX));
    assert!(states(&[wide], 64).conversation_bytes(64).0 < 1 << 42);
}

#[test]
fn a_page_that_was_used_before_starts_as_nan() {
    let mut states = two_widths(2);
    let first = states.open();
    states.begin(&[Grow { conv: first, len: 2, tokens: vec![], marked: vec![] }]).unwrap();
    let mut op = OpStates { states: &mut states, ids: &IDS };
    op.row_mut(1, first.0, 0).unwrap().fill(7.0);
    states.commit().unwrap();
    states.close(first);
    let second = states.open();
    states.begin(&[Grow { conv: second, len: 1, tokens: vec![], marked: vec![] }]).unwrap();
    let op = OpStates { states: &mut states, ids: &IDS };
    assert!(op.row(1, second.0, 0).unwrap().iter().all(|number| number.is_nan()));
    assert!(op.row(1, second.0, 2).is_none(), "a position without a page");
}

#[test]
fn the_context_is_a_bound_that_changes_nothing() {
    let mut states = two_widths(4);
    let (fits, full) = (states.open(), states.open());
    let grow = |conv, len| Grow { conv, len, tokens: vec![], marked: vec![] };
    let error = states.begin(&[grow(fits, 10), grow(full, 101)]).unwrap_err();
    assert_eq!(error.text, "101 positions do not fit a context of 100: make it larger with --ctx");
    assert_eq!((states.len(fits), states.live_pages()), (Some(0), (0, 0)), "the room that was made is given back");
}

#[test]
fn what_is_not_open_is_an_error() {
    let mut states = two_widths(4);
    let conv = states.open();
    states.close(conv);
    let text = "conversation 0 is not open";
    assert_eq!(states.rewind(conv, 0).unwrap_err().text, text);
    assert_eq!(states.snapshot(conv).unwrap_err().text, text);
    assert_eq!(states.share_prefix(ConvId(0), 0).unwrap_err().text, text);
    assert_eq!(states.begin(&[Grow { conv, len: 1, tokens: vec![], marked: vec![] }]).unwrap_err().text, text);
    assert_eq!(states.len(conv), None);
}

#[test]
fn rows_that_keep_the_last_n_are_read_in_that_range_only() {
    for page in [2, 3, 64] {
        let mut states = states(&[rows(1, 1, Keep::Last(3))], page);
        let conv = states.open();
        append(&mut states, conv, 50, &[], 0.0);
        assert_eq!([46, 47, 49].map(|index| read(&mut states, conv, index)), [None, Some(47.0), Some(49.0)], "pages of {page}");
    }
}

#[test]
fn an_op_cannot_write_rows_from_before_the_step() {
    let mut states = two_widths(4);
    let conv = states.open();
    append(&mut states, conv, 3, &[], 0.0);
    states.begin(&[Grow { conv, len: 4, tokens: vec![], marked: vec![] }]).unwrap();
    let mut op = OpStates { states: &mut states, ids: &IDS };
    assert!(op.row_mut(0, conv.0, 2).is_none() && op.row_mut(0, conv.0, 3).is_some());
    assert!(op.accumulator(0, conv.0, 3).is_none(), "rows are no accumulator");
}

/// The texts of the rule; which of them holds when is the random test's business.
#[test]
fn a_refusal_says_what_is_gone() {
    let mut keeping = states(&[rows(1, 1, Keep::Last(3))], 2);
    let conv = keeping.open();
    append(&mut keeping, conv, 30, &[], 0.0);
    let text = |result: Result<()>| result.unwrap_err().text;
    let begins = "a conversation of 30 positions cannot continue after";
    assert_eq!(text(keeping.rewind(conv, 31)), format!("{begins} 31: it has not got there"));
    let gone = "of the states that keep the last 3 positions, row 18 is the first one stored";
    assert_eq!(text(keeping.rewind(conv, 20)), format!("{begins} 20: {gone}"));
    assert_eq!(keeping.rewind(conv, 21), Ok(()));
    let mut summing = states(&[StateKind::Accumulator { shape: vec![2] }], 2);
    let conv = summing.open();
    for len in [10, 30] {
        summing.begin(&[Grow { conv, len, tokens: vec![], marked: vec![len - 1] }]).unwrap();
        let mut op = OpStates { states: &mut summing, ids: &IDS[..1] };
        (op.states.len(conv).unwrap()..len).for_each(|pos| op.accumulator(0, conv.0, pos).unwrap().fill(pos as f32));
        summing.commit().unwrap();
    }
    assert_eq!(text(summing.rewind(conv, 9)), format!("{begins} 9: its accumulators are known after 0, 10, 29, 30 positions only"));
    assert_eq!(summing.rewind(conv, 29), Ok(()));
}

#[test]
fn accumulators_are_advanced_in_row_order_or_not_at_all() {
    let mut states = states(&[StateKind::Accumulator { shape: vec![2] }, rows(1, 1, Keep::All)], 2);
    let conv = states.open();
    assert!(OpStates { states: &mut states, ids: &IDS }.accumulator(0, conv.0, 0).is_none(), "outside of a step");
    states.begin(&[Grow { conv, len: 2, tokens: vec![], marked: vec![] }]).unwrap();
    let mut op = OpStates { states: &mut states, ids: &IDS };
    assert!(op.accumulator(0, conv.0, 1).is_none(), "not the next row");
    op.accumulator(0, conv.0, 0).unwrap().fill(1.0);
    assert!(op.accumulator(0, conv.0, 0).is_none(), "twice");
    assert!(op.accumulator(1, conv.0, 1).is_none() && op.row(0, conv.0, 0).is_none(), "of the other kind");
    let fault = "accumulator 0 of conversation 0 was not advanced by the row at position 1";
    assert_eq!(op.states.commit().unwrap_err().text, fault);
    states.abandon();
    assert_eq!(states.live_pages(), (0, 0));
    states.begin(&[Grow { conv, len: 1, tokens: vec![], marked: vec![] }]).unwrap();
    let mut op = OpStates { states: &mut states, ids: &IDS };
    assert_eq!(op.accumulator(0, conv.0, 0).unwrap(), [0.0; 2], "what the failed step did is gone");
}

#[test]
fn copies_share_pages_until_one_of_them_writes() {
    let mut states = states(&[rows(1, 1, Keep::All)], 4);
    let first = states.open();
    append(&mut states, first, 10, &[], 0.0);
    let snapshot = states.snapshot(first).unwrap();
    let (whole, part) = (states.restore(&snapshot), states.share_prefix(first, 5).unwrap());
    assert_eq!(states.live_pages(), (3, 0));
    append(&mut states, first, 11, &[], 100.0);
    assert_eq!(states.live_pages().0, 4, "the last page of three");
    append(&mut states, part, 6, &[], 200.0);
    assert_eq!(states.live_pages().0, 5);
    append(&mut states, whole, 12, &[], 300.0);
    assert_eq!(states.live_pages().0, 6, "the snapshot still has the old one");
    drop(snapshot);
    assert_eq!(states.live_pages().0, 5);
    let rows = [(first, 9), (first, 10), (part, 4), (part, 5), (part, 6), (whole, 5), (whole, 11)];
    let read = rows.map(|(conv, index)| read(&mut states, conv, index).filter(|number| !number.is_nan()));
    assert_eq!(read, [Some(9.0), Some(110.0), Some(4.0), Some(205.0), None, Some(5.0), Some(311.0)]);
}

#[test]
#[should_panic(expected = "a snapshot of other states")]
fn a_snapshot_belongs_to_its_states() {
    let mut states = two_widths(4);
    let conv = states.open();
    let snapshot = states.snapshot(conv).unwrap();
    two_widths(4).restore(&snapshot);
}

#[test]
fn a_conversations_bytes_are_those_of_its_pages_at_most() {
    let kinds = [rows(1, 1, Keep::All), rows(3, 1, Keep::All), rows(2, 4, Keep::All), StateKind::Accumulator { shape: vec![5, 7] }];
    let counted = states(&kinds, 6);
    // 9 positions: two pages of 6 rows of 4 numbers; one page of 2 rows of 2 numbers; three values of 35.
    assert_eq!(counted.conversation_bytes(9), Bytes(4 * (2 * 6 * 4 + 2 * 2 + 3 * 35)));
    for (stride, n, page) in [(1, 1, 2), (1, 3, 2), (1, 9, 5), (2, 3, 7), (3, 4, 2), (5, 9, 64), (5, 1, 3)] {
        let mut states = states(&[rows(1, stride, Keep::Last(n))], page);
        let conv = states.open();
        let page_bytes = u64::from(page.max(stride).div_ceil(stride)) * 4;
        for len in 1..=100 {
            states.begin(&[Grow { conv, len, tokens: vec![], marked: vec![] }]).unwrap();
            states.commit().unwrap();
            let (live, planned) = (states.live_pages().0 as u64 * page_bytes, states.conversation_bytes(len).0);
            assert!(live <= planned, "stride {stride} keep {n} page {page}: {live} bytes after {len} positions, planned {planned}");
        }
    }
}

#[test]
fn a_page_holds_whole_groups() {
    // Pages of 3 rows, of 1 row and of 2 rows.
    for (stride, page, rows_of_page) in [(1, 3, 3), (7, 3, 1), (3, 5, 2)] {
        let states = states(&[rows(1, stride, Keep::All)], page);
        let bytes = |rows: u32| states.conversation_bytes(rows * stride).0;
        assert_eq!([1, rows_of_page, rows_of_page + 1].map(bytes), [1, 1, 2].map(|pages| pages * 4 * u64::from(rows_of_page)));
        assert_eq!(states.conversation_bytes(stride - 1), Bytes(0), "no group is complete");
    }
}
