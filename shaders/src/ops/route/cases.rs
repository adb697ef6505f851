//! Cases of `route@1`.

use super::RouteParams;
use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    let mut all = case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let params = RouteParams { scale: b.number("scale") as f32, ..RouteParams::softmax(b.count("k"), b.flag("renorm")) };
        let logits = b.values("logits");
        let chosen = super::record(b.recorder(), logits, params);
        outputs(b, chosen);
    });
    all.extend(case_file::build(include_str!("kinds.json"), |b: &mut CaseBuilder| {
        let (k, scale, renormalise) = (b.count("k"), b.number("scale") as f32, b.flag("renorm"));
        let params = match b.text("score") {
            "softmax" => RouteParams { scale, ..RouteParams::softmax(k, renormalise) },
            "sigmoid" => RouteParams { renormalise, ..RouteParams::sigmoid(k, scale) },
            _ => RouteParams { renormalise, ..RouteParams::sqrt_softplus(k, scale) },
        };
        let params = params.grouped(b.count("groups"), b.count("kept"));
        let logits = b.values("logits");
        let chosen = match b.text("choice") {
            "biased" => {
                let bias = b.weight("bias");
                super::record_biased(b.recorder(), logits, bias, params)
            }
            "given" => {
                let ids = b.ints("given");
                super::record_given(b.recorder(), logits, ids, params)
            }
            _ => super::record(b.recorder(), logits, params),
        };
        outputs(b, chosen);
    }));
    all
}

fn outputs(b: &mut CaseBuilder, (ids, w): (crate::api::recorder::Operand, crate::api::recorder::Operand)) {
    b.output("ids", ids);
    b.output("w", w);
}
