//! Cases of `take@1`.

use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    // The wanted rows of a step stand in its order, once each.
    let in_order = |name: &str| !matches!(name, "reversed" | "repeated");
    case_file::build_some(include_str!("cases.json"), in_order, |b: &mut CaseBuilder| {
        b.wanted("rows");
        let x = b.values("x");
        let y = super::record(b.recorder(), x);
        b.output("y", y);
    })
}
