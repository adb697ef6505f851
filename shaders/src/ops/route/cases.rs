//! Cases of `route@1`.

use super::RouteParams;
use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let params = RouteParams { scale: b.number("scale") as f32, ..RouteParams::softmax(b.count("k"), b.flag("renorm")) };
        let logits = b.values("logits");
        let (ids, w) = super::record(b.recorder(), logits, params);
        b.output("ids", ids);
        b.output("w", w);
    })
}
