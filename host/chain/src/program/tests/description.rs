//! Rules of the description.

use coli_plugin_api::describe::{Activation, Keep, Residency, StateKind};

use super::super::description::WIDTH_MAX;
use super::*;

fn rows(parts: &mut Parts) -> (&mut Vec<coli_plugin_api::describe::RowPart>, &mut u32, &mut Keep) {
    match &mut parts.description.states[0].kind {
        StateKind::Rows { parts, stride, keep } => (parts, stride, keep),
        StateKind::Accumulator { .. } => panic!("the small model has rows"),
    }
}

#[test]
fn numbers_have_bounds() {
    all_refused(&[
        (|p| p.description.context_max = 0, "the plugin's description: context_max is 0, expected 1 to 67108864"),
        (|p| p.description.context_max = u32::MAX, "context_max is 4294967295"),
        (|p| p.description.vocab = 0, "the plugin's description: vocab is 0, expected 1 to 2097152"),
        (|p| p.description.vocab = WIDTH_MAX + 1, "vocab is 2097153"),
    ]);
}

#[test]
fn segments_are_those_of_a_step_in_order() {
    fn name(parts: &mut Parts, at: usize, name: SegmentName) {
        parts.description.segments[at] = name;
        parts.recordings[at].0 = name;
    }
    all_refused(&[
        (|p| p.description.segments.clear(), "the plugin's description: 0 segments, expected 1 to 4096"),
        (|p| p.description.segments = (0..4097).map(SegmentName::Layer).collect(), "4097 segments, expected 1 to 4096"),
        (|p| p.description.segments.swap(1, 2), "segment `layer.0` comes after `layer.1`"),
        (|p| p.description.segments.swap(0, 3), "segment `layer.0` comes after `head`"),
        (|p| name(p, 2, SegmentName::Layer(0)), "segment `layer.0` comes after `layer.0`"),
        (|p| name(p, 2, SegmentName::Layer(2)), "segment `layer.2` where `layer.1` is expected"),
        (|p| name(p, 1, SegmentName::Layer(1)), "segment `layer.1` comes after `layer.1`"),
        (|p| p.description.segments = vec![EMBED, SegmentName::Layer(1), HEAD], "segment `layer.1` where `layer.0` is expected"),
        (|p| name(p, 0, SegmentName::Setup), "segments of the kind of `setup` are not implemented"),
        (|p| name(p, 0, SegmentName::Encode(3)), "segments of the kind of `encode.3` are not implemented"),
        (|p| name(p, 3, SegmentName::Draft(1)), "segment `draft.1` where `draft.0` is expected"),
        (|p| name(p, 3, SegmentName::DraftFeed(1)), "segments of the kind of `draft_feed.1` are not implemented"),
    ]);
}

#[test]
fn weights_are_matrices_or_vectors() {
    fn as_table(parts: &mut Parts) {
        parts.description.weights[0].table = Some(Residency::Any);
        parts.description.weights[0].shape[0] = 1 << 31;
    }
    all_refused(&[
        (|p| p.description.weights[2].shape.clear(), "the plugin's description: weight 2 `head`: 0 dimensions, expected 1 or 2"),
        (|p| p.description.weights[2].shape = vec![1, 11, 8], "weight 2 `head`: 3 dimensions, expected 1 or 2"),
        (|p| p.description.weights[2].shape[1] = 0, "weight 2 `head`: a dimension is 0"),
        (|p| p.description.weights[2].shape[0] = WIDTH_MAX + 1, "weight 2 `head`: a dimension is 2097153"),
        (|p| p.description.weights[0].table = Some(Residency::Disk), "weight 0 `embed`: tables that stay on disk are not implemented"),
        (|p| p.description.weights[0].shape[0] = 1 << 31, "weight 0 `embed`: a dimension is 2147483648"),
        (as_table, "weight 0 `embed`: rows of a table is 2147483648, expected 1 to 2147483647"),
    ]);
}

#[test]
fn states_have_owners_widths_and_bounds() {
    fn accumulator(parts: &mut Parts, shape: &[u32]) {
        parts.description.states[1].kind = StateKind::Accumulator { shape: shape.into() };
    }
    all_refused(&[
        (|p| p.description.states[0].owner = SegmentName::Layer(2), "state 0 `layer.0.kv`: its owner `layer.2` is not a segment"),
        (|p| p.description.states[0].owner = SegmentName::Setup, "state 0 `layer.0.kv`: its owner `setup` is not a segment"),
        (|p| rows(p).0.clear(), "state 0 `layer.0.kv`: its rows have no parts"),
        (|p| rows(p).0[1].width = 0, "state 0 `layer.0.kv`: a part's width is 0"),
        (|p| rows(p).0[1].width = u32::MAX, "state 0 `layer.0.kv`: a part's width is 4294967295"),
        (|p| *rows(p).1 = 0, "state 0 `layer.0.kv`: its stride is 0, expected 1 to 67108864"),
        (|p| *rows(p).1 = u32::MAX, "state 0 `layer.0.kv`: its stride is 4294967295"),
        (|p| *rows(p).2 = Keep::Last(0), "state 0 `layer.0.kv`: the number of positions it keeps is 0, expected 1 to 67108864"),
        (|p| *rows(p).2 = Keep::Last(u32::MAX), "state 0 `layer.0.kv`: the number of positions it keeps is 4294967295"),
        (
            |p| {
                p.description.states[0].shared = true;
                *rows(p).2 = Keep::Last(3);
            },
            "state 0 `layer.0.kv`: a shared state keeps all its rows",
        ),
        (
            |p| {
                p.description.states[1].shared = true;
                accumulator(p, &[2, 2]);
            },
            "state 1 `layer.1.kv`: an accumulator cannot be shared",
        ),
        (|p| accumulator(p, &[]), "state 1 `layer.1.kv`: 0 dimensions, expected 1 to 4"),
        (|p| accumulator(p, &[1; 5]), "state 1 `layer.1.kv`: 5 dimensions, expected 1 to 4"),
        (|p| accumulator(p, &[2, 0]), "state 1 `layer.1.kv`: a dimension is 0"),
        (|p| accumulator(p, &[2, u32::MAX]), "state 1 `layer.1.kv`: a dimension is 4294967295"),
        (|p| accumulator(p, &[WIDTH_MAX; 4]), "state 1 `layer.1.kv`: 18446744073709551615 numbers, expected at most 67108864"),
    ]);
}

#[test]
fn groups_have_experts_and_layers() {
    all_refused(&[
        (|p| p.description.groups[0].count = 0, "the plugin's description: group 0 `experts`: count is 0, expected 1 to 65536"),
        (|p| p.description.groups[0].count = 65537, "group 0 `experts`: count is 65537"),
        (|p| p.description.groups[0].width = 0, "group 0 `experts`: width is 0"),
        (|p| p.description.groups[0].hidden = 0, "group 0 `experts`: hidden is 0"),
        (|p| p.description.groups[0].hidden = WIDTH_MAX + 1, "group 0 `experts`: hidden is 2097153"),
        (|p| p.description.groups[0].layers.clear(), "group 0 `experts`: 0 layers, expected 1 to 4096"),
    ]);
}

#[test]
fn what_experts_do_is_checked_where_they_are_used() {
    all_refused(&[
        (|p| p.description.groups[0].weight_before_down = true, "layer.0: op 13 moe@1: weights before the last matrix not implemented"),
        (
            |p| p.description.groups[0].activation = Activation::SiluClamp { limit: 0.0 },
            "op 13 moe@1: parameter `limit`: 0 with kind silu clamp",
        ),
        (|p| p.description.groups[0].activation = Activation::SiluClamp { limit: -1.0 }, "op 13 moe@1: parameter `limit`: -1"),
        (|p| p.description.groups[0].activation = Activation::SiluClamp { limit: f32::NAN }, "op 13 moe@1: parameter `limit`: NaN"),
        (|p| p.description.groups[0].width = 9, "op 13 moe@1: input 0: width is 8, expected 9"),
        (|p| p.description.groups[0].count = 1, "op 13 moe@1: input 1: 2 ids a row of 1 experts"),
        (|p| drop(p.description.groups[0].layers.pop()), "layer.1: op 13 moe@1: parameter `layer`: 1 of 1 in the group"),
        (|p| p.description.groups.clear(), "layer.0: op 13 moe@1: group 0 of 0"),
    ]);
}

/// A role is a plugin's text: it must not steer a terminal.
#[test]
fn a_role_is_printed_without_control_characters_and_cut() {
    let mut parts = Parts::new(1);
    parts.description.states[0].role = format!("\u{1b}[2J{}", "x".repeat(500));
    parts.description.states[0].kind = StateKind::Accumulator { shape: vec![] };
    let text = parts.build().err().expect("a refusal").text;
    assert!(!text.contains('\u{1b}') && text.len() < 200, "{text:?}");
    let mut parts = Parts::new(1);
    parts.description.states[0].role = "\u{1b}[2J".into();
    parts.segment(LAYER).ops.remove(6);
    let text = parts.build().err().expect("a refusal").text;
    assert!(text.contains("state `[2J` is read before it is written"), "{text:?}");
}
