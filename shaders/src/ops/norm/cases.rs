//! Cases of `norm@1`.

use super::{NormParams, Weighting};
use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let weighting = match b.text("weight") {
            "none" => Weighting::None,
            "shared" => Weighting::Shared,
            _ => Weighting::Full,
        };
        let params = NormParams { weighting, groups: b.count("groups"), ..NormParams::rms(b.number("eps") as f32) };
        let x = b.values("x");
        let weights: Vec<_> = (weighting != Weighting::None).then(|| b.weight("weight")).into_iter().collect();
        let y = super::record(b.recorder(), x, &weights, params);
        b.output("y", y);
    })
}
