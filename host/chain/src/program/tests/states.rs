//! Who may write and read a state, and when.

use coli_plugin_api::describe::{Keep, StateKind};
use coli_plugin_api::program::{Access, OpRecord, StateId};

use super::*;

const LATER: SegmentName = SegmentName::Layer(1);

/// Lets the first op of a name in a segment use this state, in this way.
fn uses(parts: &mut Parts, segment: SegmentName, name: &str, state: u32, access: Access) {
    parts.op(segment, name).states = vec![(StateId(state), access)];
}

#[test]
fn a_state_is_one_of_the_table_used_as_the_op_says() {
    all_refused(&[
        (|p| uses(p, LAYER, "append@1", 2, Access::Append), "layer.0: op 6 append@1: state 2 of 2"),
        (|p| uses(p, LAYER, "attend@1", u32::MAX, Access::Read), "layer.0: op 7 attend@1: state 4294967295 of 2"),
        (|p| p.op(LAYER, "attend@1").states.clear(), "layer.0: op 7 attend@1: 0 states, expected 1"),
        (|p| p.op(LAYER, "append@1").states.clear(), "layer.0: op 6 append@1: 0 states, expected 1"),
        (|p| p.op(LAYER, "attend@1").states.push((StateId(0), Access::Read)), "layer.0: op 7 attend@1: 2 states, expected 1"),
        (|p| p.op(LAYER, "norm@1").states.push((StateId(0), Access::Append)), "layer.0: op 0 norm@1: 1 states, expected 0"),
        (
            |p| uses(p, LAYER, "append@1", 0, Access::Update),
            "layer.0: op 6 append@1: state `layer.0.kv`: access Update; rows are read and appended, accumulators updated",
        ),
        (|p| uses(p, LAYER, "append@1", 0, Access::Read), "layer.0: op 6 append@1: state `layer.0.kv` is read before it is written"),
        (|p| uses(p, LAYER, "attend@1", 0, Access::Append), "layer.0: op 7 attend@1: state `layer.0.kv` is written twice"),
        (|p| uses(p, LAYER, "attend@1", 0, Access::Update), "layer.0: op 7 attend@1: state `layer.0.kv`: access Update; rows are read and"),
    ]);
}

#[test]
fn a_state_is_written_by_its_owner_alone_and_once() {
    all_refused(&[
        (
            |p| uses(p, LATER, "append@1", 0, Access::Append),
            "layer.1: op 6 append@1: state `layer.0.kv` belongs to `layer.0`, which alone may write it",
        ),
        (
            |p| {
                p.description.states[0].shared = true;
                uses(p, LATER, "append@1", 0, Access::Append);
            },
            "layer.1: op 6 append@1: state `layer.0.kv` belongs to `layer.0`, which alone may write it",
        ),
        (
            |p| {
                let append = p.op(LAYER, "append@1").clone();
                p.segment(LAYER).ops.insert(7, append);
            },
            "layer.0: op 7 append@1: state `layer.0.kv` is written twice",
        ),
    ]);
}

#[test]
fn a_state_is_read_elsewhere_only_when_it_is_shared_and_later() {
    all_refused(&[
        (
            |p| uses(p, LATER, "attend@1", 0, Access::Read),
            "layer.1: op 7 attend@1: state `layer.0.kv` belongs to `layer.0` and is not shared",
        ),
        (
            |p| {
                p.description.states[1].shared = true;
                uses(p, LAYER, "attend@1", 1, Access::Read);
            },
            "layer.0: op 7 attend@1: state `layer.1.kv` is read before it is written",
        ),
    ]);
    let mut parts = Parts::new(2);
    parts.description.states[0].shared = true;
    uses(&mut parts, LATER, "attend@1", 0, Access::Read);
    assert!(parts.build().is_ok(), "a shared state that an earlier segment wrote");
}

/// The rows of this step are not there yet: the op would see those of an abandoned one.
#[test]
fn a_state_is_read_after_it_is_written() {
    fn take_append(parts: &mut Parts) -> OpRecord {
        parts.segment(LAYER).ops.remove(6)
    }
    all_refused(&[
        (|p| drop(take_append(p)), "layer.0: op 6 attend@1: state `layer.0.kv` is read before it is written"),
        (
            |p| {
                let append = take_append(p);
                p.segment(LAYER).ops.insert(7, append);
            },
            "layer.0: op 6 attend@1: state `layer.0.kv` is read before it is written",
        ),
    ]);
}

/// An accumulator in place of a layer's rows: no op of the small model fits it.
#[test]
fn an_accumulator_is_updated_and_nothing_else() {
    fn accumulator(parts: &mut Parts) {
        parts.description.states[0].kind = StateKind::Accumulator { shape: vec![2, 4] };
    }
    all_refused(&[
        (accumulator, "layer.0: op 6 append@1: state `layer.0.kv`: access Append; rows are read and appended, accumulators updated"),
        (
            |p| {
                accumulator(p);
                p.segment(LAYER).ops.remove(6);
            },
            "layer.0: op 6 attend@1: state `layer.0.kv`: access Read; rows are read and appended, accumulators updated",
        ),
        (
            |p| {
                accumulator(p);
                uses(p, LAYER, "append@1", 0, Access::Update);
            },
            "layer.0: op 6 append@1: state 0: access Update, expected Append",
        ),
    ]);
}

#[test]
fn an_accumulator_that_nothing_advances_is_refused() {
    let mut parts = Parts::new(1);
    let mut state = parts.description.states[0].clone();
    state.kind = StateKind::Accumulator { shape: vec![2] };
    parts.description.state(state);
    let text = parts.build().err().expect("a refusal").text;
    assert_eq!(text, "the plugin's description: state 1 `layer.0.kv`: no op advances this accumulator");
}

/// What `append@1` and `attend@1` take of strides and of rows that keep the last n.
#[test]
fn causal_attention_wants_every_row_of_every_position() {
    fn rows(parts: &mut Parts, new_stride: u32, new_keep: Keep) {
        if let StateKind::Rows { stride, keep, .. } = &mut parts.description.states[0].kind {
            (*stride, *keep) = (new_stride, new_keep);
        }
    }
    all_refused(&[
        (|p| rows(p, 4, Keep::All), "layer.0: op 7 attend@1: state 0: stride 4 with mask causal, expected 1"),
        (|p| rows(p, 1, Keep::Last(9)), "layer.0: op 7 attend@1: state 0: keeps the last 9 with mask causal, which sees all"),
    ]);
}
