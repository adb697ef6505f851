//! Cases of `index_topk@1`: the rows of a step store their keys first, those of a group's last position with a stride.

use super::IndexTopkParams;
use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};
use crate::ops::append;

pub(super) fn all() -> Vec<Case> {
    case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let params = IndexTopkParams {
            expand: b.flag("expand"),
            cand_block: b.count("cand_block"),
            cand_out: b.count("cand_out"),
            ..IndexTopkParams::rows(b.count("heads"), b.count("k"), b.number("scale") as f32, b.count("stride"))
        };
        b.rows_of("rows");
        let (q, k) = (b.values("q"), b.values("keys"));
        let weights = b.has("w").then(|| b.values("w"));
        let given = b.has("cand").then(|| b.ints("cand"));
        let state = b.strided_state(&[k.width()], params.stride);
        append::record(b.recorder(), &[k], state);
        let (list, cand) = super::record(b.recorder(), q, weights, given, state, params);
        b.output("list", list);
        if let Some(cand) = cand {
            b.output("cand_out", cand);
        }
    })
}
