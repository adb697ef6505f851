//! Cases of `act@1`.

use super::{ActKind, ActParams};
use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let number = |key: &str| b.number(key) as f32;
        let (kind, scale, add, limit) = (kind(b.text("kind")), number("scale"), number("add"), number("limit"));
        let x = b.values("x");
        let w = b.flag("weight").then(|| b.weight("w"));
        let y = super::record(b.recorder(), x, w, ActParams { kind, scale, add, limit });
        b.output("y", y);
    })
}

fn kind(text: &str) -> ActKind {
    use ActKind::*;
    let all = [Linear, Silu, Sigmoid, Gelu, GeluTanh, Relu, Tanh, Exp, SqrtSoftplus, SignsqrtSigmoid, Clamp];
    all.into_iter().find(|kind| kind.text() == text).unwrap_or_else(|| panic!("kind {text}"))
}
