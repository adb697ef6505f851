//! Cases of `norm@1`.

use super::{EpsPlace, NormKind, NormParams, Weighting};
use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    let mut all = case_file::build(include_str!("cases.json"), |b| {
        let params = NormParams { groups: b.count("groups"), ..NormParams::rms(b.number("eps") as f32) };
        record(b, params);
    });
    all.extend(case_file::build(include_str!("kinds.json"), |b| {
        let params = NormParams {
            kind: match b.text("kind") {
                "rms" => NormKind::Rms,
                "layer" => NormKind::Layer,
                _ => NormKind::L2,
            },
            zero_centred: b.flag("zero_centred"),
            eps_place: if b.flag("eps_outside") { EpsPlace::Outside } else { EpsPlace::Inside },
            scale: b.number("scale") as f32,
            groups: b.count("groups"),
            ..NormParams::rms(b.number("eps") as f32)
        };
        record(b, params);
    }));
    all
}

fn record(b: &mut CaseBuilder, params: NormParams) {
    let (weighting, names) = match b.text("weight") {
        "none" => (Weighting::None, vec![]),
        "shared" => (Weighting::Shared, vec!["weight"]),
        "shared bias" => (Weighting::Shared, vec!["weight", "bias"]),
        "full bias" => (Weighting::Full, vec!["weight", "bias"]),
        _ => (Weighting::Full, vec!["weight"]),
    };
    let x = b.values("x");
    let weights: Vec<_> = names.into_iter().map(|name| b.weight(name)).collect();
    let y = super::record(b.recorder(), x, &weights, NormParams { weighting, ..params });
    b.output("y", y);
}
