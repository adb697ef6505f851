//! Cases of `spread@1`.

use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let streams = b.count("streams");
        let (h, y, share) = (b.values("h"), b.values("y"), b.values("b"));
        let comb = b.flag("comb").then(|| b.values("comb"));
        let new = super::record(b.recorder(), h, y, share, comb, streams);
        b.output("new", new);
    })
}
