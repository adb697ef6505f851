//! Cases of `append@1`: what was stored is seen through `attend@1` with one head whose scores are all equal, which gives the mean of the
//! stored V parts so far; whole numbers and powers of two make it exact.

use coli_plugin_api::describe::Keep;

use crate::contract::Case;
use crate::contract::case_file::CaseBuilder;
use crate::ops::attend::{self, AttendInput, AttendParams, AttendSource};

pub(super) fn all() -> Vec<Case> {
    vec![running_mean(), last_of_each_group(), last_positions(), groups_of_conversations()]
}

fn running_mean() -> Case {
    let mut b = CaseBuilder::by_hand("running mean of what was stored", "by hand: 8; (8+0)/2; then a second conversation");
    b.rows(&[(0, 0), (0, 1), (1, 0)]);
    let q = b.given("q", 1, &[0.0, 0.0, 0.0]);
    let k = b.given("k", 1, &[5.0, -3.0, 2.0]);
    let v = b.given("v", 2, &[8.0, 16.0, 0.0, 32.0, 7.0, 9.0]);
    let state = b.rows_state(&[1, 2]);
    super::record(b.recorder(), &[k, v], state);
    let y = attend::record(b.recorder(), q, state, AttendParams::causal(1, 1, 1, 2, 1.0));
    b.expect("y", y, &[8.0, 16.0, 4.0, 24.0, 7.0, 9.0], 0.0);
    b.finish()
}

/// With stride 3 the rows at positions 2 and 5 are stored. A row that sees none gives 0.
fn last_of_each_group() -> Case {
    let mut b = CaseBuilder::by_hand("the last row of each group", "by hand: nothing, nothing, 4, 4, 4, (4+8)/2, (4+8)/2");
    let q = b.given("q", 1, &[0.0; 7]);
    let k = b.given("k", 1, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    let v = b.given("v", 1, &[1.0, 2.0, 4.0, 16.0, 32.0, 8.0, 64.0]);
    let state = b.strided_state(&[1, 1], 3);
    super::record(b.recorder(), &[k, v], state);
    let y = attend::record(b.recorder(), q, state, AttendParams::complete(1, 1, 1, 1, 1.0));
    b.expect("y", y, &[0.0, 0.0, 4.0, 4.0, 4.0, 6.0, 6.0], 0.0);
    b.finish()
}

/// A state that keeps the last 2 positions before the row: the mean of the last 3 is seen, in each of two conversations.
fn last_positions() -> Case {
    let mut b = CaseBuilder::by_hand("the rows of the last positions", "by hand: 8, (8+4)/2, (8+4+0)/3, (4+0+2)/3, (0+2+1)/3; 5, (5+7)/2");
    b.rows(&[(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (1, 1)]);
    let q = b.given("q", 1, &[0.0; 7]);
    let k = b.given("k", 1, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    let v = b.given("v", 1, &[8.0, 4.0, 0.0, 2.0, 1.0, 5.0, 7.0]);
    let state = b.kept_state(&[1, 1], 1, Keep::Last(2));
    super::record(b.recorder(), &[k, v], state);
    let window = AttendSource::rows_window(3).columns(0, 1);
    let y = attend::record(b.recorder(), q, state, AttendParams::over(window, 1, 1, 1, 1, 1.0));
    b.expect("y", y, &[8.0, 6.0, 4.0, 2.0, 1.0, 5.0, 6.0], 0.0);
    b.finish()
}

/// Groups of 4: conversation 0 begins within its second one, which its position 7 stores as row 1; conversation 1 begins with its third.
fn groups_of_conversations() -> Case {
    let mut b =
        CaseBuilder::by_hand("groups that conversations begin within", "by hand: row 1 is that of position 7, row 2 that of position 11");
    b.rows(&[(0, 6), (0, 7), (0, 8), (1, 8), (1, 9), (1, 10), (1, 11)]);
    let q = b.given("q", 1, &[0.0; 7]);
    let k = b.given("k", 1, &[1.0; 7]);
    let v = b.given("v", 2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0]);
    let list = b.given_ids("list", 1, &[-1, 1, 1, -1, -1, -1, 2]);
    let state = b.strided_state(&[1, 2], 4);
    super::record(b.recorder(), &[k, v], state);
    let params = AttendParams::over(AttendSource::list().columns(0, 1), 1, 1, 1, 2, 1.0);
    let y = attend::record_sources(b.recorder(), q, &[AttendInput::list(state, list)], None, params);
    b.expect("y", y, &[0.0, 0.0, 3.0, 4.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 13.0, 14.0], 0.0);
    b.finish()
}
