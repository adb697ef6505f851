//! Cases of `matmul_heads@1`.

use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let (groups, transpose) = (b.count("groups"), b.flag("transpose"));
        let (x, w) = (b.values("x"), b.weight("w"));
        let y = super::record(b.recorder(), x, w, groups, transpose);
        b.output("y", y);
    })
}
