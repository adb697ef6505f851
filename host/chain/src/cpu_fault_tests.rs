//! What only a run can show: every fault is named, grows no conversation, and leaves the next step's bits as they were.

use std::sync::atomic::{AtomicBool, Ordering};

use coli_plugin_api::program::{GroupId, WeightId};
use coli_shaders::contract::ExpertMatrix;
use coli_shaders::formats::{Format, WeightView};

use super::*;
use crate::small_model::EXPERTS;

/// Numbers whose router gives NaN on demand.
struct Faulty {
    numbers: Numbers,
    router: WeightId,
    nan: Vec<u8>,
    broken: AtomicBool,
}

impl WeightStore for Faulty {
    fn weight(&self, id: WeightId) -> Option<WeightView<'_>> {
        let whole = self.numbers.weight(id)?;
        if id == self.router && self.broken.load(Ordering::Relaxed) {
            return WeightView::new(Format::F32, whole.rows(), whole.cols(), &self.nan);
        }
        Some(whole)
    }

    fn expert(&self, group: GroupId, layer: u32, expert: u32, matrix: ExpertMatrix) -> Option<WeightView<'_>> {
        self.numbers.expert(group, layer, expert, matrix)
    }
}

/// Runs five tokens, then the fault, then the other tokens: the fault must say why and leave no trace.
#[track_caller]
fn fault_leaves_no_trace(bench: &mut Bench, expected: &str, fault: impl FnOnce(&mut Bench, ConvId) -> Result<Seen>, mend: impl FnOnce()) {
    let conv = bench.states.open();
    bench.append(conv, &TOKENS[..5]).unwrap();
    let text = fault(bench, conv).expect_err("a fault").text;
    assert!(text.contains(expected), "{text}: expected {expected}");
    assert_eq!(bench.states.len(conv), Some(5), "{text}: the conversation grew");
    mend();
    let next = bench.append(conv, &TOKENS[5..]).unwrap();
    assert!(next.logits == plain().logits[5..], "{text}: the next step saw it");
}

#[test]
fn a_token_outside_the_vocabulary_leaves_no_trace() {
    fault_leaves_no_trace(&mut Bench::small(), "token 11 of a vocabulary of 11", |bench, conv| bench.append(conv, &[1, VOCAB]), || ());
}

#[test]
fn a_step_of_more_rows_than_planned_leaves_no_trace() {
    let fault = |bench: &mut Bench, conv| bench.append(conv, &[1; 17]);
    fault_leaves_no_trace(&mut Bench::small(), "a step of 17 rows, at most 16 were planned", fault, || ());
}

#[test]
fn a_full_context_leaves_no_trace_and_its_last_position_is_usable() {
    let setup = Setup { context: 12, page: 5, ..Setup::default() };
    let mut bench = Bench::new(Parts::new(2).build().unwrap(), &setup);
    fault_leaves_no_trace(&mut bench, "13 positions do not fit a context of 12", |bench, conv| bench.append(conv, &[1; 8]), || ());
    assert_eq!(bench.states.len(ConvId(0)), Some(12));
    assert!(bench.append(ConvId(0), &[1]).is_err());
}

/// The second conversation of a step does not fit: the first one, which does, must not grow either.
#[test]
fn a_conversation_that_does_not_fit_takes_the_whole_step_with_it() {
    let mut bench = Bench::new(Parts::new(2).build().unwrap(), &Setup { context: 12, ..Setup::default() });
    let full = bench.states.open();
    bench.append(full, &TOKENS).unwrap();
    let fault = |bench: &mut Bench, conv| {
        let rows = [bench.rows(conv, &[9, 9], |_| true), bench.rows(full, &[9], |_| true)];
        bench.step(rows.concat())
    };
    fault_leaves_no_trace(&mut bench, "13 positions do not fit a context of 12", fault, || ());
    assert_eq!(bench.states.len(full), Some(12));
}

#[test]
fn an_id_outside_the_table_is_named_and_leaves_no_trace() {
    let mut parts = Parts::new(2);
    parts.description.vocab = VOCAB + 1;
    let mut bench = Bench::new(parts.build().unwrap(), &Setup::default());
    let fault = |bench: &mut Bench, conv| bench.append(conv, &[1, VOCAB]);
    fault_leaves_no_trace(&mut bench, "embed op 0 gather@1: id 11 is outside a table of 11 rows", fault, || ());
}

#[test]
fn a_router_that_gives_nan_is_named_and_leaves_no_trace() {
    let parts = Parts::new(2);
    let router = parts.layers[1].router;
    let nan = [f32::NAN.to_le_bytes(); (EXPERTS * HIDDEN) as usize].concat();
    let faulty = Faulty { numbers: Numbers::of(&parts.description), router: router.id, nan, broken: AtomicBool::new(false) };
    let faulty = Arc::new(faulty);
    let mut bench = Bench::with(parts.build().unwrap(), faulty.clone(), &Setup::default());
    let fault = |bench: &mut Bench, conv| {
        faulty.broken.store(true, Ordering::Relaxed);
        // Other tokens than those that follow, so that layer 0's rows of this step are wrong for the next one.
        bench.append(conv, &[9, 9, 9])
    };
    let mend = || faulty.broken.store(false, Ordering::Relaxed);
    fault_leaves_no_trace(&mut bench, "layer.1 op 12 route@1: a router's scores are not finite", fault, mend);
}

#[test]
fn an_observers_error_ends_the_step_and_leaves_no_trace() {
    let fault = |bench: &mut Bench, conv| {
        let step = Step::prompt(bench.rows(conv, &[9, 9], |_| true));
        let refuse = |ports: &Ports<'_>| if ports.segment == SegmentName::Head { Err(Error::run("enough")) } else { Ok(()) };
        bench.executor.run(&mut bench.states, &step, refuse).map(|()| Seen::default())
    };
    fault_leaves_no_trace(&mut Bench::small(), "enough", fault, || ());
}

#[test]
fn memory_that_nobody_has_is_an_error() {
    let program = Arc::new(Parts::new(1).build().unwrap());
    let weights = Arc::new(Numbers::of(program.description()));
    for rows in [1 << 58, usize::MAX] {
        let error = CpuExecutor::new(program.clone(), weights.clone(), rows, 1).err().expect("an error");
        assert!(error.text.starts_with("no memory for"), "{error}");
    }
}
