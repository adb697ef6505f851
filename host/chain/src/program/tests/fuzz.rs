//! Random damages: [`Program::build`] never panics, and whatever it accepts runs, to a result or an error.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use coli_plugin_api::codec;
use coli_plugin_api::program::{
    Access, Builtin, DomainId, GroupId, InputId, InputSource, OpRecord, Recording, Source, StateId, Ty, ValueId, WeightId,
};
use coli_plugin_api::serde_json::{self, Value};
use coli_shaders::contract::Sampling;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;
use crate::small_model::Numbers;
use crate::{CpuExecutor, Row, States, Step};

/// Scratch and state memory that a run may take here. A host makes the same comparison before it takes any.
const MEMORY: u64 = 64 << 20;

/// Damages of a test that were accepted, and of these the ones that ran to a result and to an error.
#[derive(Debug, Default)]
struct Counts {
    accepted: AtomicUsize,
    results: AtomicUsize,
    errors: AtomicUsize,
}

impl Counts {
    fn note(count: &AtomicUsize) {
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Builds, and runs what is accepted.
    fn try_out(&self, description: &Description, segments: &[(SegmentName, Vec<u8>)]) {
        let Ok(program) = Program::build(description, segments, &OpTable::library(), &[]) else { return };
        Self::note(&self.accepted);
        match run(program) {
            None => {}
            Some(Ok(())) => Self::note(&self.results),
            Some(Err(_)) => Self::note(&self.errors),
        }
    }

    /// A test that accepts nothing, or runs nothing, shows nothing.
    fn check(&self, ran_min: usize) {
        let ran = self.results.load(Ordering::Relaxed) + self.errors.load(Ordering::Relaxed);
        assert!(ran >= ran_min, "{self:?}");
    }
}

/// Runs two steps of three rows; `None` where that would take too much memory.
fn run(program: Program) -> Option<Result<()>> {
    const ROWS: usize = 3;
    let numbers = Numbers::of(program.description());
    let mut states = States::new(program.description(), 4, program.description().context_max);
    if !numbers.has_all() || program.scratch_bytes(ROWS, 2).0 + states.conversation_bytes(2 * ROWS as u32).0 > MEMORY {
        return None;
    }
    let vocab = program.description().vocab;
    let mut executor = CpuExecutor::new(Arc::new(program), Arc::new(numbers), ROWS, 2).unwrap();
    let conv = states.open();
    let mut step = |start: u32| {
        let row = |index: u32| Row::text(conv, start + index, (7 * index) % vocab, (index != 1).then_some(Sampling::GREEDY));
        let step = Step::prompt((0..ROWS as u32).map(row).collect());
        executor.run(&mut states, &step, |ports| {
            let names = ["h", "logits", "sampled"];
            names
                .iter()
                .filter_map(|name| ports.get(name))
                .for_each(|(columns, rows)| (0..rows).for_each(|row| drop(columns.ints(row).to_vec())));
            Ok(())
        })
    };
    Some(step(0).and_then(|()| step(ROWS as u32)))
}

fn check<S: Strategy>(cases: u32, strategy: &S, test: impl Fn(S::Value)) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(strategy, |value| {
        test(value);
        Ok(())
    });
    result.unwrap_or_else(|fault| panic!("{fault}"));
}

/// Numbers at which something changes, more often than others.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        8 => 0u32..24,
        1 => (0u32..32).prop_map(|bit| 1 << bit),
        1 => (0u32..32).prop_map(|bit| (1 << bit) - 1),
        1 => Just((1 << 21) + 1),
        1 => Just(u32::MAX),
        1 => any::<u32>(),
    ]
}

#[test]
fn damaged_bytes_never_panic() {
    let (parts, counts) = (Parts::new(2), Counts::default());
    let segments = parts.encoded().unwrap();
    let change = (any::<prop::sample::Index>(), prop_oneof![any::<u8>(), 0u8..4]);
    let damage = (0usize..4, prop::collection::vec(change, 1..5), prop::option::weighted(0.1, any::<prop::sample::Index>()));
    check(6000, &damage, |(segment, changes, cut)| {
        let mut segments = segments.clone();
        let bytes = &mut segments[segment].1;
        // The header is damaged too, but not in every case.
        changes.iter().for_each(|(at, byte)| *at.get_mut(&mut bytes[4..]) = *byte);
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let len = bytes.len() as u32;
        if let Some(header) = bytes.get_mut(4..8) {
            header.copy_from_slice(&len.to_le_bytes());
        }
        counts.try_out(&parts.description, &segments);
    });
    counts.check(30);
}

/// Changes the entry of a list that `at` chooses; an empty list has none.
fn change<T>(list: &mut [T], at: usize, change: impl FnOnce(&mut T)) {
    let len = list.len().max(1);
    if let Some(entry) = list.get_mut(at % len) {
        change(entry);
    }
}

/// Changes one field, which `field` chooses, of the entry of its table that `at` chooses.
fn damage(recording: &mut Recording, field: u32, at: usize, number: u32) {
    let ty = if number.is_multiple_of(2) { Ty::F32 } else { Ty::I32 };
    let count = recording.ops.len();
    let ops = &mut recording.ops;
    match field {
        0 => change(&mut recording.values, at, |value| value.width = number),
        1 => change(&mut recording.values, at, |value| value.ty = ty),
        2 => change(&mut recording.values, at, |value| value.domain = DomainId(number as u16)),
        3 => change(&mut recording.inputs, at, |input| input.width = number),
        4 => change(&mut recording.inputs, at, |input| input.source = InputSource::Builtin(Builtin::ALL[number as usize % 5])),
        5 => change(&mut recording.inputs, at, |input| input.domain = DomainId(number as u16)),
        6 => change(&mut recording.ports, at, |port| port.value = ValueId(number)),
        7 => change(&mut recording.ports, at, |port| port.name = ["h", "g", "logits", "sampled"][number as usize % 4].into()),
        8 => ops.truncate(number as usize),
        9 if count > 0 => ops.swap(at % count, number as usize % count),
        10 if count > 0 => ops.push(ops[at % count].clone()),
        11 => recording.domains.reverse(),
        _ => change(ops, at, |op| damage_op(op, field, number)),
    }
}

fn damage_op(op: &mut OpRecord, field: u32, number: u32) {
    let (pick, small) = ((number >> 8) as usize, number & 0xff);
    match field {
        12 => change(&mut op.ins, pick, |operand| operand.col0 = small),
        13 => change(&mut op.ins, pick, |operand| operand.ncols = small),
        14 => change(&mut op.ins, pick, |operand| operand.source = Source::Value(ValueId(small))),
        15 => change(&mut op.ins, pick, |operand| operand.source = Source::Input(InputId(small))),
        16 => change(&mut op.weights, pick, |id| *id = WeightId(small)),
        17 => change(&mut op.states, pick, |(id, _)| *id = StateId(small)),
        18 => change(&mut op.states, pick, |(_, access)| *access = [Access::Read, Access::Append, Access::Update][small as usize % 3]),
        19 => change(&mut op.groups, pick, |id| *id = GroupId(small)),
        20 => change(&mut op.outs, pick, |id| *id = ValueId(small)),
        21 => op.name = coli_shaders::ops::all().swap_remove(pick % 12).id,
        22 => op.weights.push(WeightId(small)),
        23 => op.ins.truncate(pick % 3),
        _ => {
            let at = pick % op.params.len().max(1);
            op.params.iter_mut().skip(at).zip(small.to_le_bytes()).for_each(|(byte, new)| *byte = new);
        }
    }
}

#[test]
fn damaged_recordings_never_panic() {
    let counts = Counts::default();
    // An op's fields take the low byte as their number and the rest as the place.
    let spread = prop_oneof![number(), (number(), 0u32..64).prop_map(|(low, place)| place << 8 | low & 0xff)];
    let change = (0u32..28, any::<prop::sample::Index>(), spread);
    check(8000, &(0usize..4, prop::collection::vec(change, 1..4)), |(segment, changes)| {
        let mut parts = Parts::new(2);
        for (field, at, number) in changes {
            damage(&mut parts.recordings[segment].1, field, at.index(1 << 16), number);
        }
        let Ok(segments) = parts.encoded() else { return };
        assert_eq!(codec::decode(&segments[segment].1).as_ref(), Ok(&parts.recordings[segment].1), "the codec changed a recording");
        counts.try_out(&parts.description, &segments);
    });
    counts.check(200);
}

/// Every number, switch and word of a JSON value, in order.
fn leaves(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Array(list) => list.iter_mut().flat_map(leaves).collect(),
        Value::Object(map) => map.values_mut().flat_map(leaves).collect(),
        leaf => vec![leaf],
    }
}

#[test]
fn damaged_descriptions_never_panic() {
    let (parts, counts) = (Parts::new(2), Counts::default());
    let segments = parts.encoded().unwrap();
    let whole = serde_json::to_value(&parts.description).unwrap();
    let words = prop::sample::select(vec!["layer.0", "layer.1", "layer.2", "head", "embed", "setup", "draft.0", "all", "main", "\u{7}\n"]);
    let change = (any::<prop::sample::Index>(), number(), words, -2.0..2.0f64);
    check(8000, &prop::collection::vec(change, 1..4), |changes| {
        let mut json = whole.clone();
        for (at, number, word, real) in changes {
            let mut leaves = leaves(&mut json);
            let at = at.index(leaves.len());
            *leaves[at] = match &*leaves[at] {
                Value::Number(_) if number % 16 == 7 => real.into(),
                Value::Number(_) => number.into(),
                Value::Bool(old) => (!old).into(),
                _ => word.into(),
            };
        }
        if let Ok(description) = serde_json::from_value::<Description>(json) {
            counts.try_out(&description, &segments);
        }
    });
    counts.check(200);
}
