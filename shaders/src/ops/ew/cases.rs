//! Cases of `ew@1`.

use super::{EwKind, EwParams};
use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    let mut all = case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let scale = b.number("s") as f32;
        let (left, right) = (b.values("a"), b.values("b"));
        let y = super::add_scaled(b.recorder(), left, right, scale);
        b.output("y", y);
    });
    all.extend(case_file::build(include_str!("kinds.json"), |b: &mut CaseBuilder| {
        use EwKind::*;
        let kinds = [Add, Mul, MulSigmoid, MulSilu, Modulate, Distance];
        let kind = kinds.into_iter().find(|kind| kind.text() == b.text("kind")).unwrap_or_else(|| panic!("kind {}", b.text("kind")));
        let (params, groups) = (EwParams { scale: b.number("s") as f32, ..EwParams::of(kind) }, b.count("groups"));
        let params = match b.text("repeat") {
            "group" => params.group(groups),
            "column" => params.column(groups),
            _ => params,
        };
        let names: &[&str] = if kind == Modulate { &["a", "b", "c"] } else { &["a", "b"] };
        let values: Vec<_> = names.iter().map(|name| b.values(name)).collect();
        let y = super::with(b.recorder(), &values, params);
        b.output("y", y);
    }));
    all
}
