//! Cases of `rope@1`. Each row is a conversation of its own, so that positions may be far apart.

use coli_plugin_api::program::Builtin;

use super::{RopeParams, RopeStyle};
use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    let mut cases = case_file::build(include_str!("cases.json"), |b| build(b, params(b)));
    cases.extend(case_file::build(include_str!("scaled.json"), |b| build(b, scaled(b))));
    cases
}

fn params(b: &CaseBuilder) -> RopeParams {
    let style = if b.text("style") == "half" { RopeStyle::Half } else { RopeStyle::Pair };
    RopeParams::part(style, b.count("head_width"), b.count("start"), b.count("end"), b.number("theta"))
}

fn scaled(b: &CaseBuilder) -> RopeParams {
    let mut params = params(b).magnitude(b.number("magnitude") as f32).grouped(b.count("group"));
    if b.text("scaling") == "yarn" {
        let (fast, slow) = (b.number("beta_fast") as f32, b.number("beta_slow") as f32);
        params = params.yarn(b.number("factor") as f32, b.count("context_original"), fast, slow);
    }
    if b.flag("inverse") { params.inverse() } else { params }
}

fn build(b: &mut CaseBuilder, params: RopeParams) {
    b.positions("pos");
    let x = b.values("x");
    let tokens = x.domain;
    let rpos = b.recorder().builtin(tokens, Builtin::RotaryPosition, 1);
    let y = super::record(b.recorder(), x, rpos, params);
    b.output("y", y);
}
