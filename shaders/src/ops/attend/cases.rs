//! Cases of `attend@1`. What earlier rows of a conversation stored is appended in the same step, or, where a case is run row by row, in the
//! steps before.

use coli_plugin_api::describe::Keep;
use coli_plugin_api::recorder::Operand;

use super::{AttendInput, AttendParams, AttendSource};
use crate::contract::Case;
use crate::contract::case_file::{self, CaseBuilder};
use crate::ops::append;

pub(super) fn all() -> Vec<Case> {
    let mut cases = case_file::build(include_str!("cases.json"), causal);
    cases.extend(case_file::build(include_str!("sources.json"), sources));
    cases.extend(case_file::build(include_str!("sinks.json"), sources));
    cases
}

/// All positions of one conversation.
fn causal(b: &mut CaseBuilder) {
    let (heads, kv_heads) = (b.count("heads"), b.count("kv_heads"));
    let (k_width, v_width) = (b.count("k_width"), b.count("v_width"));
    let params = AttendParams::causal(heads, kv_heads, k_width, v_width, b.number("scale") as f32);
    let (q, k, v) = (b.values("q"), b.values("k"), b.values("v"));
    let state = b.rows_state(&[kv_heads * k_width, kv_heads * v_width]);
    append::record(b.recorder(), &[k, v], state);
    let y = super::record(b.recorder(), q, state, params);
    b.output("y", y);
}

/// One or two sources, each with a state of its own, and sinks where there are any.
fn sources(b: &mut CaseBuilder) {
    b.rows_of("rows");
    let q = b.values("q");
    let (first, first_input) = source(b, 1);
    let (heads, kv_heads) = (b.count("heads"), b.count("kv_heads"));
    let mut params = AttendParams::over(first, heads, kv_heads, b.count("k_width"), b.count("v_width"), b.number("scale") as f32);
    let mut inputs = vec![first_input];
    if b.has("rows2") {
        let (second, second_input) = source(b, 2);
        params = params.and(second);
        inputs.push(second_input);
    }
    let sink = b.has("sink").then(|| b.weight("sink"));
    let y = super::record_sources(b.recorder(), q, &inputs, sink, params);
    b.output("y", y);
}

/// Appends `rows1` or `rows2` to a new state, one part of a row.
fn source(b: &mut CaseBuilder, which: u32) -> (AttendSource, AttendInput) {
    let key = |what: &str| format!("{what}{which}");
    let rows = b.values(&key("rows"));
    let keep = match b.count(&key("keep")) {
        0 => Keep::All,
        n => Keep::Last(n),
    };
    let state = b.kept_state(&[rows.width()], b.count(&key("stride")), keep);
    append::record(b.recorder(), &[rows], state);
    let source = match b.text(&key("mask")) {
        "causal" => AttendSource::rows_causal(),
        "window" => AttendSource::rows_window(b.count(&key("window"))),
        "complete" => AttendSource::rows_complete(),
        "list" => AttendSource::list(),
        other => panic!("mask {other}"),
    };
    let list: Option<Operand> = b.has(&key("list")).then(|| b.ints(&key("list")));
    (source.columns(b.count(&key("k_col")), b.count(&key("v_col"))), AttendInput { state, list })
}
