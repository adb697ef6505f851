//! Random sequences of everything that can be done to conversations, over random states and page sizes. After each act the next outputs
//! of every conversation are those of a recompute of its tokens in other states, bit for bit, and what is refused is what the model of
//! the rules refuses.

use std::collections::HashMap;
use std::sync::Arc;

use coli_base::{Error, Result};
use coli_plugin_api::describe::{Keep, SegmentName};
use coli_shaders::contract::{CaseWeights, Sampling};
use coli_shaders::formats::Format;
use proptest::prelude::*;

use super::model::Model;
use super::ops::{self, FAULT, Kind, VOCAB, WIDTH};
use crate::{ConvId, CpuExecutor, Program, Row, Snapshot, States, Step};

const CONTEXT: u32 = 70;
/// Rows of a step, at most.
const ROWS: usize = 256;
/// Conversations and snapshots at a time.
const MANY: usize = 6;

/// What a step of several conversations does to each: which one, its tokens, and a bit for each row that is marked.
type Part = (usize, Vec<u32>, u16);

#[derive(Debug, Clone)]
enum Act {
    Open,
    Step(Vec<Part>),
    /// A step whose last row's token makes an op fail after others have run.
    StepOfFault(Vec<Part>),
    /// A step whose observer refuses the head's ports.
    StepRefused(Vec<Part>),
    /// A step whose rows are all marked, of which some stay.
    Verify(usize, Vec<u32>, usize),
    /// So many positions back; more than there are is no position at all.
    Rewind(usize, usize),
    Snapshot(usize),
    Restore(usize),
    Drop(usize),
    Share(usize, usize),
    Close(usize),
}

fn tokens() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(0..FAULT, 1..13)
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let marks = prop_oneof![3 => Just(0u16), 1 => any::<u16>()];
    prop::collection::vec((0..MANY, tokens(), marks), 1..4)
}

fn back() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0usize..12, 2 => 0usize..40, 1 => 0usize..80]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => Just(Act::Open),
        10 => parts().prop_map(Act::Step),
        1 => parts().prop_map(Act::StepOfFault),
        1 => parts().prop_map(Act::StepRefused),
        4 => (0..MANY, tokens(), 0usize..13).prop_map(|(conv, tokens, stay)| Act::Verify(conv, tokens, stay)),
        5 => (0..MANY, back()).prop_map(|(conv, back)| Act::Rewind(conv, back)),
        2 => (0..MANY).prop_map(Act::Snapshot),
        2 => (0..MANY).prop_map(Act::Restore),
        1 => (0..MANY).prop_map(Act::Drop),
        3 => (0..MANY, back()).prop_map(|(conv, back)| Act::Share(conv, back)),
        1 => (0..MANY).prop_map(Act::Close),
    ]
}

fn kinds() -> impl Strategy<Value = Vec<Kind>> {
    let keep = prop_oneof![Just(Keep::All), (1u32..10).prop_map(Keep::Last)];
    let rows = (prop_oneof![2 => Just(1u32), 3 => 1u32..6], keep).prop_map(|(stride, keep)| Kind::Rows { stride, keep });
    // Two states of one class among them, often.
    let rows = prop::collection::vec(rows, 1..4).prop_flat_map(|rows| {
        let twice = prop_oneof![Just(vec![]), Just(vec![rows[0]])];
        twice.prop_map(move |twice| [rows.clone(), twice].concat())
    });
    let accumulators = prop_oneof![3 => Just(0usize), 2 => Just(1usize), 1 => Just(2usize)];
    (rows, accumulators).prop_flat_map(|(rows, accumulators)| {
        let kinds = [rows, vec![Kind::Accumulator; accumulators]].concat();
        Just(kinds).prop_shuffle()
    })
}

fn executor(kinds: &[Kind]) -> CpuExecutor {
    let program: Program = ops::build(kinds, CONTEXT).unwrap();
    let mut weights = CaseWeights::default();
    let table: Vec<f32> = (0..VOCAB).flat_map(ops::embedding).collect();
    weights.push(Format::F32, VOCAB as usize, WIDTH as usize, &table);
    CpuExecutor::new(Arc::new(program), Arc::new(weights), ROWS, ROWS).unwrap()
}

/// Rows' outputs as bits.
type Outputs = Vec<Vec<u32>>;

/// Runs a step and gives the outputs of its rows; `refuse` lets the observer end it with an error once it has seen them.
fn run(executor: &mut CpuExecutor, states: &mut States, rows: Vec<Row>, refuse: bool) -> (Outputs, Result<()>) {
    let mut outputs = vec![];
    let result = executor.run(states, &Step::prompt(rows), |ports| {
        if let Some((y, rows)) = ports.get("y") {
            outputs.extend((0..rows).map(|row| y.row(row).iter().map(|number| number.to_bits()).collect::<Vec<_>>()));
        }
        match refuse && ports.segment == SegmentName::Head {
            true => Err(Error::run("refused by the observer")),
            false => Ok(()),
        }
    });
    (outputs, result)
}

struct Bench {
    kinds: Vec<Kind>,
    page: u32,
    other_page: u32,
    executor: CpuExecutor,
    states: States,
    conversations: Vec<(ConvId, Model)>,
    snapshots: Vec<(Snapshot, Model)>,
    known: HashMap<Vec<u32>, Outputs>,
}

impl Bench {
    fn new(kinds: Vec<Kind>, page: u32, other_page: u32) -> Self {
        let executor = executor(&kinds);
        let states = States::new(&ops::description(&kinds, CONTEXT), page, CONTEXT);
        Self { kinds, page, other_page, executor, states, conversations: vec![], snapshots: vec![], known: HashMap::new() }
    }

    /// The outputs of a token history, from other states and from plain loops.
    fn recompute(&mut self, tokens: &[u32]) -> &Outputs {
        if !self.known.contains_key(tokens) {
            let mut states = States::new(&ops::description(&self.kinds, CONTEXT), self.other_page, CONTEXT);
            let conv = states.open();
            let row = |(pos, token): (usize, &u32)| Row::text(conv, pos as u32, *token, Some(Sampling::GREEDY));
            let (outputs, result) = run(&mut self.executor, &mut states, tokens.iter().enumerate().map(row).collect(), false);
            result.unwrap();
            assert_eq!(outputs, ops::plain_loops(&self.kinds, tokens), "plain loops");
            self.known.insert(tokens.into(), outputs);
        }
        &self.known[tokens]
    }

    /// The next rows of a conversation.
    fn rows(&self, at: usize, tokens: &[u32], marks: u16) -> Vec<Row> {
        let (conv, model) = &self.conversations[at];
        let start = model.tokens.len() as u32;
        let row = |(index, token): (usize, &u32)| Row {
            rewindable: marks >> index & 1 == 1,
            ..Row::text(*conv, start + index as u32, *token, Some(Sampling::GREEDY))
        };
        tokens.iter().enumerate().map(row).collect()
    }

    /// The parts of a step that name a conversation for the first time.
    fn distinct(&self, parts: &[Part]) -> Vec<Part> {
        let mut distinct: Vec<Part> = vec![];
        for (at, tokens, marks) in parts.iter().filter(|_| !self.conversations.is_empty()) {
            let at = at % self.conversations.len();
            if distinct.iter().all(|(known, ..)| *known != at) {
                distinct.push((at, tokens.clone(), *marks));
            }
        }
        distinct
    }

    fn fits(&self, parts: &[Part]) -> bool {
        parts.iter().all(|(at, tokens, _)| self.conversations[*at].1.tokens.len() + tokens.len() <= CONTEXT as usize)
    }

    fn step(&mut self, parts: &[Part]) {
        let parts = self.distinct(parts);
        let rows = parts.iter().flat_map(|(at, tokens, marks)| self.rows(*at, tokens, *marks)).collect();
        let (outputs, result) = run(&mut self.executor, &mut self.states, rows, false);
        if !self.fits(&parts) {
            return assert!(result.unwrap_err().text.contains("do not fit a context"));
        }
        result.unwrap();
        let mut expected = vec![];
        for (at, tokens, marks) in &parts {
            let (kinds, page) = (&self.kinds, self.page);
            let model = &mut self.conversations[*at].1;
            let start = model.tokens.len();
            let marked: Vec<usize> = (0..tokens.len()).filter(|row| marks >> row & 1 == 1).map(|row| start + row + 1).collect();
            model.append(kinds, page, tokens, &marked);
            let history = model.tokens.clone();
            expected.extend_from_slice(&self.recompute(&history)[start..]);
        }
        assert_eq!(outputs, expected, "outputs of the step");
    }

    fn failing_step(&mut self, parts: &[Part], refuse: bool) {
        let mut parts = self.distinct(parts);
        if let Some((_, tokens, _)) = parts.last_mut().filter(|_| !refuse) {
            tokens.push(FAULT);
        }
        let rows: Vec<Row> = parts.iter().flat_map(|(at, tokens, marks)| self.rows(*at, tokens, *marks)).collect();
        if rows.is_empty() {
            return;
        }
        let text = run(&mut self.executor, &mut self.states, rows, refuse).1.unwrap_err().text;
        let expected = match (self.fits(&parts), refuse) {
            (false, _) => "do not fit a context",
            (true, true) => "refused by the observer",
            (true, false) => "the row of the fault",
        };
        assert!(text.contains(expected), "{text}, expected {expected}");
    }

    fn verify(&mut self, at: usize, tokens: &[u32], stay: usize) {
        let Some((conv, model)) = self.conversations.get(at) else { return };
        let (conv, start) = (*conv, model.tokens.len());
        let parts = [(at, tokens.to_vec(), u16::MAX)];
        let fits = self.fits(&parts);
        self.step(&parts);
        if fits {
            let len = start + stay.min(tokens.len());
            assert!(self.conversations[at].1.may_continue(&self.kinds, len), "a verify may be taken back to any of its rows");
            self.states.rewind(conv, len as u32).unwrap();
            self.conversations[at].1 = self.conversations[at].1.cut(&self.kinds, len);
        }
    }

    /// Goes back to `len` positions with a rewind, or with a new conversation. `len` may be more than there are.
    fn go_back(&mut self, at: usize, back: usize, share: bool) {
        let Some((conv, model)) = self.conversations.get(at) else { return };
        let have = model.tokens.len();
        // One more than there are, in place of fewer than none.
        let len = have.checked_sub(back).unwrap_or(if back.is_multiple_of(2) { have + 1 } else { 0 });
        let allowed = model.may_continue(&self.kinds, len);
        let result = match share {
            true => self.states.share_prefix(*conv, len as u32),
            false => self.states.rewind(*conv, len as u32).map(|()| *conv),
        };
        match result {
            Err(error) => {
                let documented = format!("a conversation of {have} positions cannot continue after {len}: ");
                assert!(error.text.starts_with(&documented), "{error}");
                assert!(!allowed, "{error}");
            }
            Ok(new) => {
                assert!(allowed, "{have} positions went back to {len}");
                let cut = self.conversations[at].1.cut(&self.kinds, len);
                if share { self.conversations.push((new, cut)) } else { self.conversations[at].1 = cut }
            }
        }
    }

    fn act(&mut self, act: &Act) {
        let room = self.conversations.len() < MANY;
        let which = |at: usize| at % self.conversations.len().max(1);
        match act {
            Act::Open if room => self.conversations.push((self.states.open(), Model::new(&self.kinds))),
            Act::Step(parts) => self.step(parts),
            Act::StepOfFault(parts) => self.failing_step(parts, false),
            Act::StepRefused(parts) => self.failing_step(parts, true),
            Act::Verify(at, tokens, stay) => self.verify(which(*at), tokens, *stay),
            Act::Rewind(at, back) => self.go_back(which(*at), *back, false),
            Act::Share(at, back) if room => self.go_back(which(*at), *back, true),
            Act::Snapshot(at) if !self.conversations.is_empty() && self.snapshots.len() < MANY => {
                let (conv, model) = &self.conversations[which(*at)];
                let snapshot = self.states.snapshot(*conv).unwrap();
                assert_eq!(snapshot.positions() as usize, model.tokens.len());
                self.snapshots.push((snapshot, model.restored()));
            }
            Act::Restore(at) if room && !self.snapshots.is_empty() => {
                let (snapshot, model) = &self.snapshots[at % self.snapshots.len()];
                self.conversations.push((self.states.restore(snapshot), model.clone()));
            }
            Act::Drop(at) if !self.snapshots.is_empty() => drop(self.snapshots.swap_remove(at % self.snapshots.len())),
            Act::Close(at) if !self.conversations.is_empty() => {
                let (conv, _) = self.conversations.swap_remove(which(*at));
                self.states.close(conv);
            }
            _ => {}
        }
    }

    /// The next outputs of every conversation, by a step that fails in the end and so changes nothing.
    fn probe(&mut self) {
        let fitting = (0..self.conversations.len()).filter(|at| self.conversations[*at].1.tokens.len() + 2 <= CONTEXT as usize);
        let parts: Vec<Part> = fitting.map(|at| (at, vec![3, 7], 1)).collect();
        let rows: Vec<Row> = parts.iter().flat_map(|(at, tokens, marks)| self.rows(*at, tokens, *marks)).collect();
        let (outputs, result) = run(&mut self.executor, &mut self.states, rows, true);
        assert!(result.is_err(), "the probe was not refused");
        let mut expected = vec![];
        for (at, tokens, _) in &parts {
            let history = [&self.conversations[*at].1.tokens[..], tokens].concat();
            expected.extend_from_slice(&self.recompute(&history)[history.len() - tokens.len()..]);
        }
        assert_eq!(outputs, expected, "the next outputs of conversations");
        for (conv, model) in &self.conversations {
            assert_eq!(self.states.len(*conv), Some(model.tokens.len() as u32));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// With `probing` after each act; without, a shared page may stay shared for long.
    #[test]
    fn every_conversation_continues_as_its_tokens_alone_would(
        kinds in kinds(),
        page in prop_oneof![2u32..10, 2u32..65],
        other_page in 2u32..65,
        probing in any::<bool>(),
        acts in prop::collection::vec(act(), 1..40),
    ) {
        let mut bench = Bench::new(kinds, page, if other_page == page { 65 } else { other_page });
        bench.act(&Act::Open);
        for act in &acts {
            bench.act(act);
            if probing {
                bench.probe();
            }
        }
        bench.probe();
        let Bench { mut states, conversations, snapshots, .. } = bench;
        conversations.iter().for_each(|(conv, _)| states.close(*conv));
        if snapshots.is_empty() {
            prop_assert_eq!(states.live_pages(), (0, 0));
        }
        drop(snapshots);
        prop_assert_eq!(states.live_pages(), (0, 0));
    }
}
