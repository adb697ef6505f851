//! Cases of `glu@1`.

use super::{GluKind, GluParams};
use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    let mut all = case_file::build(include_str!("cases.json"), record);
    all.extend(case_file::build(include_str!("kinds.json"), record));
    all
}

fn record(b: &mut CaseBuilder) {
    let params = match b.text("kind") {
        "gelu" => GluParams::GELU,
        "silu" => GluParams { kind: GluKind::Silu, limit: 0.0 },
        _ => GluParams { kind: GluKind::SiluClamp, limit: b.number("limit") as f32 },
    };
    let (gate, up) = (b.values("g"), b.values("u"));
    let y = super::record(b.recorder(), gate, up, params);
    b.output("y", y);
}
