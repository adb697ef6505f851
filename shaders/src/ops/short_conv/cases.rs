//! Cases of `short_conv@1`.

use coli_plugin_api::describe::Keep;

use super::{ShortConvAct, ShortConvParams};
use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let act = if b.text("act") == "silu" { ShortConvAct::Silu } else { ShortConvAct::None };
        let params = ShortConvParams { taps: b.count("taps"), dilation: b.count("dilation"), act, residual: b.flag("residual") };
        b.rows_of("rows");
        let x = b.values("x");
        let w = b.weight("w");
        let state = b.kept_state(&[x.width()], 1, Keep::Last(((params.taps - 1) * params.dilation).max(1)));
        let y = super::record(b.recorder(), x, w, state, params);
        b.output("y", y);
    })
}
