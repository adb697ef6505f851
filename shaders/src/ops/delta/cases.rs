//! Cases of `delta@1`.

use super::{DeltaDecay, DeltaHeads, DeltaParams, DeltaRate};
use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};

pub(super) fn all() -> Vec<Case> {
    let negated = with(DeltaRate::Negated).into_iter().map(|case| Case { name: format!("{}_negated", case.name), ..case });
    with(DeltaRate::Log).into_iter().chain(negated).collect()
}

/// The file's cases, whose A is a logarithm, with A as the rate wants it.
fn with(rate: DeltaRate) -> Vec<Case> {
    case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let params = DeltaParams {
            key_heads: b.count("key_heads"),
            head_map: if b.text("head_map") == "tiled" { DeltaHeads::Tiled } else { DeltaHeads::Grouped },
            decay: if b.text("decay") == "bounded" { DeltaDecay::Bounded } else { DeltaDecay::Softplus },
            bound: b.number("bound") as f32,
            per_channel: b.flag("per_channel"),
            rate,
        };
        b.rows_of("rows");
        let [q, k, v, gate, beta] = ["q", "k", "v", "gate", "beta"].map(|key| b.values(key));
        let a = b.weight_by("a", |a| if rate == DeltaRate::Log { a } else { -a.exp() });
        let dt = b.weight("dt");
        let state = b.accumulator_state(&[beta.width(), q.width() / params.key_heads, v.width() / beta.width()]);
        let y = super::record(b.recorder(), q, k, v, gate, beta, a, dt, state, params);
        b.output("y", y);
    })
}
