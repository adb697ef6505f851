//! Cases of `gather@1`.

use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    let mut all = case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let (ids, table) = (b.ints("ids"), b.weight("table"));
        let y = super::record(b.recorder(), ids, table);
        b.output("y", y);
    });
    all.extend(case_file::build(include_str!("kinds.json"), |b: &mut CaseBuilder| {
        let (ids, table) = (b.ints("ids"), b.weight("table"));
        let record = if b.text("join") == "sum" { super::record_sum } else { super::record_mean };
        let y = record(b.recorder(), ids, table);
        b.output("y", y);
    }));
    all
}
