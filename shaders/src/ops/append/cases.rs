//! Cases of `append@1`: what was stored is seen through `attend@1` with one head whose scores are all equal, which gives the mean of the
//! stored V parts so far; whole numbers and powers of two make it exact.

use crate::contract::Case;
use crate::contract::case_file::CaseBuilder;
use crate::ops::attend::{self, AttendParams};

pub(super) fn all() -> Vec<Case> {
    vec![running_mean()]
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
