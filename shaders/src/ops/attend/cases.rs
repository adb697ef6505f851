//! Cases of `attend@1`: the rows of a step are all positions of one conversation.

use super::AttendParams;
use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};
use crate::ops::append;

pub(super) fn all() -> Vec<Case> {
    case_file::build(include_str!("cases.json"), |b: &mut CaseBuilder| {
        let (heads, kv_heads) = (b.count("heads"), b.count("kv_heads"));
        let (k_width, v_width) = (b.count("k_width"), b.count("v_width"));
        let params = AttendParams::causal(heads, kv_heads, k_width, v_width, b.number("scale") as f32);
        let (q, k, v) = (b.values("q"), b.values("k"), b.values("v"));
        let state = b.rows_state(&[kv_heads * k_width, kv_heads * v_width]);
        append::record(b.recorder(), &[k, v], state);
        let y = super::record(b.recorder(), q, state, params);
        b.output("y", y);
    })
}
