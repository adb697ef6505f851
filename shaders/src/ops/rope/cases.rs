//! Cases of `rope@1`. Each row is a conversation of its own, so that positions may be far apart.

use coli_plugin_api::program::Builtin;

use super::{RopeParams, RopeStyle};
use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let style = if b.text("style") == "half" { RopeStyle::Half } else { RopeStyle::Pair };
        let whole = RopeParams::whole(style, b.count("head_width"), b.number("theta"));
        let params = RopeParams { start: b.count("start"), end: b.count("end"), ..whole };
        b.positions("pos");
        let x = b.values("x");
        let tokens = x.domain;
        let rpos = b.recorder().builtin(tokens, Builtin::RotaryPosition, 1);
        let y = super::record(b.recorder(), x, rpos, params);
        b.output("y", y);
    })
}
