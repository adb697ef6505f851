//! Cases of `matmul@1`.

use super::MatmulAct;
use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    // The kinds come first: their first case is one whose weight cannot be taken for a bias.
    let mut all = case_file::build(include_str!("kinds.json"), |b: &mut CaseBuilder| {
        use MatmulAct::*;
        let act = [None, Silu, Gelu, Relu, Sigmoid].into_iter().find(|act| act.text() == b.text("act"));
        let act = act.unwrap_or_else(|| panic!("act {}", b.text("act")));
        let (x, w) = (b.values("x"), b.weight("w"));
        let bias = b.flag("bias").then(|| b.weight("b"));
        let y = super::record_act(b.recorder(), x, w, bias, act);
        b.output("y", y);
    });
    all.extend(case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let (x, w) = (b.values("x"), b.weight("w"));
        let y = super::record(b.recorder(), x, w);
        b.output("y", y);
    }));
    all
}
