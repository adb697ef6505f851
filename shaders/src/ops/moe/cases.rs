//! Cases of `moe@1`.

use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let group = b.experts("gate", "up", "down");
        let (x, ids, w) = (b.values("x"), b.ints("ids"), b.values("w"));
        let y = super::record(b.recorder(), x, ids, w, group, 0);
        b.output("y", y);
    })
}
