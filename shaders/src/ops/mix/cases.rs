//! Cases of `mix@1`.

use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let streams = b.count("streams");
        let h = b.values("h");
        let a = (!b.flag("mean")).then(|| b.values("a"));
        let y = super::record(b.recorder(), h, a, streams);
        b.output("y", y);
    })
}
