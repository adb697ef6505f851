//! Nothing wrong gets past [`Program::build`]: tables of damages to a small valid model, each with the text of its refusal, and random
//! damages that must never panic.

mod bytes;
mod description;
mod fuzz;
mod ops;
mod segments;
mod states;

use coli_plugin_api::describe::SegmentName;
use coli_plugin_api::params::Params;

use super::*;
use crate::small_model::Parts;

const EMBED: SegmentName = SegmentName::Embed;
const LAYER: SegmentName = SegmentName::Layer(0);
const HEAD: SegmentName = SegmentName::Head;

/// A damage to a model of two layers, and what its refusal says.
type Damage = (fn(&mut Parts), &'static str);

/// Each damage alone must be refused, with its text.
#[track_caller]
fn all_refused(damages: &[Damage]) {
    let wrong: Vec<String> = damages.iter().filter_map(|(damage, expected)| wrong_refusal(*damage, expected)).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), damages.len(), wrong.join("\n"));
}

fn wrong_refusal(damage: fn(&mut Parts), expected: &str) -> Option<String> {
    let mut parts = Parts::new(2);
    damage(&mut parts);
    match parts.build() {
        Ok(_) => Some(format!("accepted, expected: {expected}")),
        Err(error) if error.kind == coli_base::Kind::Refused && error.text.contains(expected) => None,
        Err(error) => Some(format!("{error}, expected: {expected}")),
    }
}

/// Changes parameters of the first op of a name.
fn retune<P: Params>(parts: &mut Parts, segment: SegmentName, name: &str, change: impl FnOnce(&mut P)) {
    let op = parts.op(segment, name);
    let mut params = P::decode(&op.params).unwrap();
    change(&mut params);
    op.params = params.encode();
}

#[test]
fn the_valid_model_is_a_language_model() {
    for layers in 1..4 {
        let program = Parts::new(layers).build().unwrap();
        assert_eq!(program.check_language_model(), Ok(()));
        assert_eq!(program.ops().count(), 1 + 20 * layers as usize + 4);
    }
}

#[test]
fn scratch_memory_is_that_of_slots_and_inputs() {
    let program = Parts::new(1).build().unwrap();
    let words = |rows: Rows| -> u64 {
        let slots = program.slots.iter().filter(|slot| slot.rows == rows).map(|slot| slot.width as u64);
        let inputs = program.inputs.iter().filter(|input| input.rows == rows).map(|input| input.width as u64);
        slots.chain(inputs).sum()
    };
    assert_eq!(program.scratch_bytes(7, 3), Bytes(4 * (7 * words(Rows::Tokens) + 3 * words(Rows::Outs))));
    assert_eq!(program.scratch_bytes(usize::MAX, usize::MAX), Bytes(u64::MAX));
}

#[test]
fn a_head_that_is_no_language_models_is_refused_as_one() {
    let refused = |change: fn(&mut Parts)| {
        let mut parts = Parts::new(1);
        change(&mut parts);
        parts.build().unwrap().check_language_model().unwrap_err().text
    };
    assert!(refused(|parts| parts.description.vocab = 10).contains("no port `logits` of 10 F32"));
    assert!(refused(|parts| drop(parts.segment(HEAD).ports.pop())).contains("no port `sampled` of 1 I32"));
    let headless = |parts: &mut Parts| {
        parts.recordings.pop();
        parts.description.segments.pop();
    };
    assert!(refused(headless).contains("no port `logits`"));
}
