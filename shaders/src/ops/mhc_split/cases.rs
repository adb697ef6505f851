//! Cases of `mhc_split@1`.

use super::MhcSplitParams;
use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let (streams, eps, iterations) = (b.count("streams"), b.number("eps") as f32, b.count("iterations"));
        let (z, scale, base) = (b.values("z"), b.weight("scale"), b.weight("base"));
        let params = MhcSplitParams { streams, eps, iterations };
        let (pre, post, comb) = super::record(b.recorder(), z, scale, base, params);
        b.output("pre", pre);
        b.output("post", post);
        b.output("comb", comb);
    })
}
