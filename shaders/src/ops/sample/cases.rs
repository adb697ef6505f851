//! Cases of `sample@1` that run as recordings: greedy. What is kept and drawn is in `tests.rs`, against the same file.

use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    case_file::build_some(
        include_str!("cases.json"),
        |name| name.starts_with("greedy"),
        |b: &mut CaseBuilder| {
            b.all_wanted();
            let x = b.values("logits");
            let logits = crate::ops::take::record(b.recorder(), x);
            let ids = super::record(b.recorder(), logits);
            b.output("ids", ids);
        },
    )
}
