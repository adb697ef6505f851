//! Cases of `matmul@1`.

use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let (x, w) = (b.values("x"), b.weight("w"));
        let y = super::record(b.recorder(), x, w);
        b.output("y", y);
    })
}
