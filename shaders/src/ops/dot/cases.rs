//! Cases of `dot@1`.

use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let (groups, scale) = (b.count("groups"), b.number("scale") as f32);
        let (left, right) = (b.values("a"), b.values("b"));
        let y = super::record(b.recorder(), left, right, groups, scale);
        b.output("y", y);
    })
}
