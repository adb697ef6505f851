//! Rules that all ops keep: what each op's own cases record is accepted, and any one change to it that makes a shape, type, row kind,
//! count or access wrong is refused. `host/chain` holds the text of each op's refusals.

use std::collections::BTreeSet;

use coli_plugin_api::describe::{StateKind, WeightRef};
use coli_plugin_api::program::{Access, Domain, OpRecord, OperandRef, Source, Ty};

use super::all;
use crate::contract::{Case, OpEntry, OpFacts, ValueFacts};

/// What an op is prepared from, owned, so that it can be changed.
#[derive(Clone)]
struct Facts {
    params: Vec<u8>,
    ins: Vec<(Domain, Ty, u32)>,
    outs: Vec<(Domain, Ty, u32)>,
    weights: Vec<WeightRef>,
    states: Vec<(StateKind, Access)>,
    groups: Vec<coli_plugin_api::describe::ExpertGroup>,
}

impl Facts {
    fn of(case: &Case, op: &OpRecord) -> Self {
        let recording = &case.recording;
        let value = |id: u32| {
            let value = recording.values[id as usize];
            (recording.domains[usize::from(value.domain.0)].clone(), value.ty, value.width)
        };
        let operand = |operand: &OperandRef| match operand.source {
            Source::Value(id) => (value(id.0).0, value(id.0).1, operand.ncols),
            Source::Input(id) => {
                let input = &recording.inputs[id.0 as usize];
                (recording.domains[usize::from(input.domain.0)].clone(), input.ty, operand.ncols)
            }
        };
        let weight = |id: &coli_plugin_api::program::WeightId| match case.description.weights[id.0 as usize].shape[..] {
            [rows, cols] => WeightRef { id: *id, rows, cols },
            [cols] => WeightRef { id: *id, rows: 1, cols },
            _ => panic!("{}: a weight's shape", case.name),
        };
        Self {
            params: op.params.clone(),
            ins: op.ins.iter().map(operand).collect(),
            outs: op.outs.iter().map(|id| value(id.0)).collect(),
            weights: op.weights.iter().map(weight).collect(),
            states: op.states.iter().map(|(id, access)| (case.description.states[id.0 as usize].kind.clone(), *access)).collect(),
            groups: op.groups.iter().map(|id| case.description.groups[id.0 as usize].clone()).collect(),
        }
    }

    fn prepare(&self, entry: &OpEntry) -> Result<(), String> {
        fn facts(list: &[(Domain, Ty, u32)]) -> Vec<ValueFacts<'_>> {
            list.iter().map(|(domain, ty, width)| ValueFacts { domain, ty: *ty, width: *width }).collect()
        }
        let (ins, outs) = (facts(&self.ins), facts(&self.outs));
        let states: Vec<_> = self.states.iter().map(|(kind, access)| (kind, *access)).collect();
        let groups: Vec<_> = self.groups.iter().collect();
        let facts = OpFacts { params: &self.params, ins: &ins, outs: &outs, weights: &self.weights, states: &states, groups: &groups };
        (entry.prepare)(&facts).map(|_| ())
    }
}

/// Each op's name and the facts of its first use in its own cases.
fn valid() -> Vec<(OpEntry, Facts)> {
    let first = |entry: OpEntry| {
        let case = (entry.cases)().swap_remove(0);
        let op = case.recording.ops.iter().find(|op| op.name == entry.id);
        let facts = Facts::of(&case, op.unwrap_or_else(|| panic!("{}: its first case does not record it", entry.id)));
        (entry, facts)
    };
    all().into_iter().map(first).collect()
}

/// Tries a change of each entry of a list, for every op. Gives `op what index` of the changes that were accepted.
fn accepted<T>(what: &str, list: impl Fn(&mut Facts) -> &mut Vec<T>, change: impl Fn(&mut Vec<T>, usize), found: &mut BTreeSet<String>) {
    for (entry, valid) in valid() {
        let len = list(&mut valid.clone()).len();
        for index in 0..len {
            let mut facts = valid.clone();
            change(list(&mut facts), index);
            if facts.prepare(&entry).is_ok() {
                found.insert(format!("{} {what} {index}", entry.id));
            }
        }
    }
}

#[track_caller]
fn all_refused(found: &BTreeSet<String>, but: &[&str]) {
    let but: BTreeSet<String> = but.iter().map(|text| text.to_string()).collect();
    assert_eq!(*found, but, "accepted, and what may be");
}

#[test]
fn what_the_cases_record_is_accepted() {
    for (entry, facts) in valid() {
        assert_eq!(facts.prepare(&entry), Ok(()), "{}", entry.id);
    }
}

#[test]
fn ids_are_a_name_and_a_version_once_each() {
    let ids: Vec<String> = all().into_iter().map(|entry| entry.id).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "an id stands twice");
    for id in ids {
        let (name, version) = id.split_once('@').unwrap();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') && version == "1", "{id}");
    }
}

#[test]
fn an_operand_output_weight_state_or_group_less_is_refused() {
    let mut found = BTreeSet::new();
    accepted("input", |facts| &mut facts.ins, |list, at| drop(list.remove(at)), &mut found);
    accepted("output", |facts| &mut facts.outs, |list, at| drop(list.remove(at)), &mut found);
    accepted("weight", |facts| &mut facts.weights, |list, at| list.truncate(at), &mut found);
    accepted("state", |facts| &mut facts.states, |list, at| list.truncate(at), &mut found);
    accepted("group", |facts| &mut facts.groups, |list, at| list.truncate(at), &mut found);
    all_refused(&found, &[]);
}

#[test]
fn one_more_of_anything_is_refused() {
    let mut found = BTreeSet::new();
    accepted("input", |facts| &mut facts.ins, |list, at| list.push(list[at].clone()), &mut found);
    accepted("output", |facts| &mut facts.outs, |list, at| list.push(list[at].clone()), &mut found);
    accepted("weight", |facts| &mut facts.weights, |list, at| list.push(list[at]), &mut found);
    accepted("state", |facts| &mut facts.states, |list, at| list.push(list[at].clone()), &mut found);
    accepted("group", |facts| &mut facts.groups, |list, at| list.push(list[at].clone()), &mut found);
    all_refused(&found, &[]);
}

#[test]
fn another_type_of_one_value_is_refused() {
    fn flip(list: &mut [(Domain, Ty, u32)], at: usize) {
        list[at].1 = if list[at].1 == Ty::F32 { Ty::I32 } else { Ty::F32 };
    }
    let mut found = BTreeSet::new();
    accepted("input", |facts| &mut facts.ins, |list, at| flip(list, at), &mut found);
    accepted("output", |facts| &mut facts.outs, |list, at| flip(list, at), &mut found);
    all_refused(&found, &[]);
}

#[test]
fn another_width_of_one_value_is_refused() {
    let mut found = BTreeSet::new();
    for by in [1, u32::MAX, 1 << 20] {
        let change = |list: &mut Vec<(Domain, Ty, u32)>, at: usize| list[at].2 = list[at].2.wrapping_add(by);
        accepted("input", |facts| &mut facts.ins, change, &mut found);
        accepted("output", |facts| &mut facts.outs, change, &mut found);
    }
    // The number of experts and of logits is what the operand says.
    all_refused(&found, &["route@1 input 0", "sample@1 input 0"]);
}

#[test]
fn another_shape_of_one_weight_is_refused() {
    let mut found = BTreeSet::new();
    accepted("rows of weight", |facts| &mut facts.weights, |list, at| list[at].rows += 1, &mut found);
    accepted("columns of weight", |facts| &mut facts.weights, |list, at| list[at].cols += 1, &mut found);
    // A table has as many rows as it has, and a decay may be stored longer than its heads.
    all_refused(&found, &["delta@1 columns of weight 0", "gather@1 rows of weight 0"]);
}

#[test]
fn one_value_of_other_rows_is_refused() {
    let mut found = BTreeSet::new();
    let outs = |list: &mut Vec<(Domain, Ty, u32)>, at: usize| {
        list[at].0 = if list[at].0 == Domain::Outs { Domain::Tokens } else { Domain::Outs };
    };
    accepted("input", |facts| &mut facts.ins, outs, &mut found);
    accepted("output", |facts| &mut facts.outs, outs, &mut found);
    all_refused(&found, &[]);
}

#[test]
fn another_access_kind_or_row_of_a_state_is_refused() {
    let mut found = BTreeSet::new();
    for access in [Access::Read, Access::Append, Access::Update] {
        let change = |list: &mut Vec<(StateKind, Access)>, at: usize| {
            let other = if access == Access::Update { Access::Read } else { Access::Update };
            list[at].1 = if list[at].1 == access { other } else { access };
        };
        accepted("access of state", |facts| &mut facts.states, change, &mut found);
    }
    let accumulator = |list: &mut Vec<(StateKind, Access)>, at: usize| list[at].0 = StateKind::Accumulator { shape: vec![1] };
    accepted("kind of state", |facts| &mut facts.states, accumulator, &mut found);
    let strided = |list: &mut Vec<(StateKind, Access)>, at: usize| match &mut list[at].0 {
        StateKind::Rows { stride, .. } => *stride = 4,
        StateKind::Accumulator { shape } => shape.push(1),
    };
    accepted("stride of state", |facts| &mut facts.states, strided, &mut found);
    let narrow = |list: &mut Vec<(StateKind, Access)>, at: usize| match &mut list[at].0 {
        StateKind::Rows { parts, .. } => parts.iter_mut().for_each(|part| part.width -= 1),
        StateKind::Accumulator { shape } => shape.iter_mut().for_each(|len| *len += 1),
    };
    accepted("width of state", |facts| &mut facts.states, narrow, &mut found);
    // It stores the rows of complete groups, whatever their length.
    all_refused(&found, &["append@1 stride of state 0"]);
}

#[test]
fn parameters_of_another_length_are_refused() {
    for (entry, valid) in valid() {
        for len in (0..valid.params.len()).chain([valid.params.len() + 1]) {
            let mut facts = valid.clone();
            facts.params.resize(len, 0);
            let text = facts.prepare(&entry).unwrap_err();
            assert!(text.starts_with(&format!("parameters are {len} bytes")), "{}: {text}", entry.id);
        }
    }
}

/// Every byte of the parameters set to every value: refused or accepted, never a panic, and each op refuses some.
#[test]
fn no_byte_of_the_parameters_panics() {
    for (entry, valid) in valid() {
        let mut refused = 0;
        for at in 0..valid.params.len() {
            for byte in 0..=255 {
                let mut facts = valid.clone();
                facts.params[at] = byte;
                refused += usize::from(facts.prepare(&entry).is_err());
            }
        }
        assert!(refused > 0, "{}: every parameter is accepted", entry.id);
    }
}
