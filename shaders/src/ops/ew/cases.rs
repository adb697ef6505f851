//! Cases of `ew@1`.

use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let scale = b.number("s") as f32;
        let (left, right) = (b.values("a"), b.values("b"));
        let y = super::add_scaled(b.recorder(), left, right, scale);
        b.output("y", y);
    })
}
