//! Cases of `pool@1`.

use coli_plugin_api::describe::Keep;

use super::{PoolMode, PoolParams};
use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let gated = b.text("mode") == "softmax";
        let mode = if gated { PoolMode::Softmax } else { PoolMode::Mean };
        let params = PoolParams { ratio: b.count("ratio"), mode, overlap: b.flag("overlap"), ape: b.has("ape") };
        b.rows_of("rows");
        let kv = b.values("kv");
        let gate = gated.then(|| b.values("gate"));
        let ape = params.ape.then(|| b.weight("ape"));
        let back = if params.overlap { 2 * params.ratio - 1 } else { params.ratio - 1 };
        let state = b.kept_state(&[kv.width(), kv.width()][..1 + usize::from(gated)], 1, Keep::Last(back.max(1)));
        let y = super::record(b.recorder(), kv, gate, ape, state, params);
        b.output("y", y);
    })
}
