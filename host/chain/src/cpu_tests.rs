//! The executor on the small model: against plain loops, and bit for bit against itself under every change that must not matter.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use coli_plugin_api::program::{Direction, Domain, Port, Source, Ty, ValueDef, ValueId, ports};
use coli_plugin_api::recorder::Recorder;
use coli_shaders::ops::norm::NormParams;
use coli_shaders::ops::{matmul, norm, sample, take};

use super::*;
use crate::Row;
use crate::small_model::{CONTEXT, EPS, HIDDEN, Numbers, Parts, VOCAB, reference};
use crate::state::ConvId;
use coli_shaders::contract::Kernel;

/// Twelve tokens, all ids of the vocabulary but 9 among them.
const TOKENS: [u32; 12] = [3, 1, 4, 1, 5, 0, 2, 6, 10, 8, 7, 3];
const NAN: u32 = f32::NAN.to_bits();

/// What an observer saw of the wanted rows and of the stream, as bits.
#[derive(Debug, Clone, Default, PartialEq)]
struct Seen {
    /// Conversation and position of every wanted row, in the order in which the head gave them.
    wanted: Vec<(u32, u32)>,
    logits: Vec<Vec<u32>>,
    sampled: Vec<i32>,
    /// The stream after the embedding and after each layer.
    streams: Vec<Vec<Vec<u32>>>,
}

impl Seen {
    fn note(&mut self, ports: &Ports<'_>) {
        if let Some((stream, rows)) = ports.get(ports::STREAM) {
            self.streams.push((0..rows).map(|row| bits(stream.row(row))).collect());
        }
        let (Some((logits, rows)), Some((sampled, _))) = (ports.get(ports::LOGITS), ports.get(ports::SAMPLED)) else { return };
        self.wanted.extend(ports.outs.iter().map(|at| (at.conv, at.pos)));
        self.logits.extend((0..rows).map(|row| bits(logits.row(row))));
        self.sampled.extend((0..rows).map(|row| sampled.ints(row)[0]));
    }
}

fn bits(row: &[f32]) -> Vec<u32> {
    row.iter().map(|number| number.to_bits()).collect()
}

/// A program, its states and what runs it.
struct Bench {
    executor: CpuExecutor,
    states: States,
}

/// How a bench is set up, where a test cares.
struct Setup {
    rows_max: usize,
    outs_max: usize,
    page: u32,
    context: u32,
}

impl Default for Setup {
    fn default() -> Self {
        Self { rows_max: 16, outs_max: 16, page: 4, context: CONTEXT }
    }
}

impl Bench {
    fn new(program: Program, setup: &Setup) -> Self {
        let weights = Arc::new(Numbers::of(program.description()));
        Self::with(program, weights, setup)
    }

    fn with(program: Program, weights: Arc<dyn WeightStore>, setup: &Setup) -> Self {
        let states = States::new(program.description(), setup.page, setup.context);
        let mut executor = CpuExecutor::new(Arc::new(program), weights, setup.rows_max, setup.outs_max).unwrap();
        // A number that nobody wrote must not look like an answer.
        executor.slots.iter_mut().chain(&mut executor.inputs).for_each(|words| words.fill(NAN));
        Self { executor, states }
    }

    fn small() -> Self {
        Self::new(Parts::new(2).build().unwrap(), &Setup::default())
    }

    fn step(&mut self, rows: Vec<Row>) -> Result<Seen> {
        let mut seen = Seen::default();
        let observe = |ports: &Ports<'_>| {
            seen.note(ports);
            Ok(())
        };
        self.executor.run(&mut self.states, &Step::prompt(rows), observe)?;
        Ok(seen)
    }

    /// Appends tokens to a conversation in one step; the outputs of all are wanted.
    fn append(&mut self, conv: ConvId, tokens: &[u32]) -> Result<Seen> {
        let rows = self.rows(conv, tokens, |_| true);
        self.step(rows)
    }

    /// The next rows of a conversation; `wanted` is asked with a row's place among them.
    fn rows(&self, conv: ConvId, tokens: &[u32], wanted: impl Fn(usize) -> bool) -> Vec<Row> {
        let start = self.states.len(conv).unwrap();
        let out = |index: usize| wanted(index).then_some(Sampling::GREEDY);
        let row = |(index, token): (usize, &u32)| Row::text(conv, start + index as u32, *token, out(index));
        tokens.iter().enumerate().map(row).collect()
    }
}

/// A conversation of all tokens in one step.
fn plain() -> Seen {
    let mut bench = Bench::small();
    let conv = bench.states.open();
    bench.append(conv, &TOKENS).unwrap()
}

#[track_caller]
fn close(what: &str, have: &[Vec<u32>], want: &[Vec<f64>]) {
    assert_eq!(have.len(), want.len(), "rows of {what}");
    let largest = want.iter().flatten().fold(0.0f64, |largest, number| largest.max(number.abs()));
    for (row, (have, want)) in have.iter().zip(want).enumerate() {
        assert_eq!(have.len(), want.len(), "width of {what}");
        for (have, want) in have.iter().map(|bits| f64::from(f32::from_bits(*bits))).zip(want) {
            assert!((have - want).abs() <= 1e-5 * largest, "{what} row {row}: {have}, plain loops say {want}");
        }
    }
}

#[test]
fn the_stream_after_every_segment_and_the_logits_are_those_of_plain_loops() {
    let parts = Parts::new(3);
    let mut bench = Bench::new(parts.build().unwrap(), &Setup::default());
    let conv = bench.states.open();
    let seen = bench.append(conv, &TOKENS).unwrap();
    let expected = reference::pass(&parts, &Numbers::of(&parts.description), &TOKENS);
    assert_eq!(seen.streams.len(), 4, "the embedding and three layers");
    for (index, stream) in seen.streams.iter().enumerate() {
        close(&format!("stream {index}"), stream, &expected.streams[index]);
    }
    close("logits", &seen.logits, &expected.logits);
    for (logits, sampled) in expected.logits.iter().zip(&seen.sampled) {
        let best = (0..VOCAB as usize).max_by(|a, b| logits[*a].total_cmp(&logits[*b])).unwrap();
        assert_eq!(*sampled as usize, best);
    }
}

#[test]
fn values_that_share_slots_give_the_bits_of_values_that_have_their_own() {
    let parts = Parts::new(3);
    let (shared, apart) = (parts.build().unwrap(), Program::build_apart(&parts.description, &parts.encoded().unwrap()).unwrap());
    assert!(shared.slots.len() < apart.slots.len() / 4, "{} slots, {} values", shared.slots.len(), apart.slots.len());
    let run = |program| {
        let mut bench = Bench::new(program, &Setup { outs_max: 5, ..Setup::default() });
        let conv = bench.states.open();
        [bench.append(conv, &TOKENS).unwrap(), bench.append(conv, &TOKENS[..3]).unwrap()]
    };
    assert_eq!(run(shared), run(apart));
}

/// A value of the whole program: the segment that wrote it, by its place, and its id there.
type Written = (usize, ValueId);

/// The op after which nobody reads a value, for every value that an op writes: computed from the recordings alone. Ops count through
/// the program. Values that stay readable are missing.
fn deaths(parts: &Parts) -> HashMap<Written, usize> {
    let mut current: HashMap<&str, Written> = HashMap::new();
    let mut last: HashMap<Written, usize> = HashMap::new();
    let mut first = 0;
    for (segment, (_, recording)) in parts.recordings.iter().enumerate() {
        let end = first + recording.ops.len() - 1;
        let over_outs = |id: ValueId| recording.domains[usize::from(recording.values[id.0 as usize].domain.0)] == Domain::Outs;
        let entered = recording.ports.iter().filter(|port| port.direction == Direction::In);
        let entered: HashMap<ValueId, Written> = entered.map(|port| (port.value, current[&*port.name])).collect();
        let written = |id: ValueId| entered.get(&id).copied().unwrap_or((segment, id));
        for (index, op) in recording.ops.iter().enumerate() {
            last.extend(op.outs.iter().map(|id| (written(*id), first + index)));
            for id in op.ins.iter().filter_map(|operand| if let Source::Value(id) = operand.source { Some(id) } else { None }) {
                let sliced = op.outs.iter().any(|out| over_outs(*out)) && !over_outs(id);
                last.insert(written(id), if sliced { end } else { first + index });
            }
        }
        for port in recording.ports.iter().filter(|port| port.direction == Direction::Out) {
            last.insert(written(port.value), end);
            current.insert(&port.name, written(port.value));
        }
        first = end + 1;
    }
    last.retain(|value, _| !current.values().any(|readable| readable == value));
    last
}

/// The program with NaN in every output before its op runs, and in the whole slot of every value once it is dead.
fn poisoned(parts: &Parts) -> (Program, usize) {
    let mut program = parts.build().unwrap();
    let widths: Vec<usize> = program.slots.iter().map(|slot| slot.width).collect();
    let deaths = deaths(parts);
    let ids =
        parts.recordings.iter().enumerate().flat_map(|(segment, (_, recording))| recording.ops.iter().map(move |op| (segment, &op.outs)));
    let ids: Vec<Vec<Written>> = ids.map(|(segment, outs)| outs.iter().map(|id| (segment, *id)).collect()).collect();
    let mut slot_of: HashMap<Written, (usize, Rows)> = HashMap::new();
    let (mut at, mut poisons) = (0, 0);
    for segment in &mut program.segments {
        let ops = std::mem::take(&mut segment.ops);
        let last = ops.len() - 1;
        for (index, op) in ops.into_iter().enumerate() {
            slot_of.extend(op.outs.iter().zip(&ids[at]).map(|((slot, _), id)| (*id, (*slot, op.rows))));
            segment.ops.push(poisoned_before(op));
            let dead = slot_of.iter().filter(|(id, _)| deaths.get(id) == Some(&at)).map(|(_, at)| *at);
            // What dies with a segment that runs in slices is read again by the next slice.
            let dead: Vec<(usize, Rows)> = dead.filter(|(_, rows)| !(segment.sliced && index == last && *rows == Rows::Tokens)).collect();
            poisons += dead.len();
            segment.ops.extend(dead.into_iter().map(|(slot, rows)| poison(slot, widths[slot], rows)));
            at += 1;
        }
    }
    (program, poisons)
}

fn fill(call: &mut CpuCall<'_>) {
    for out in call.outs.iter_mut() {
        (0..call.rows.len()).for_each(|row| out.row(row).fill(f32::NAN));
    }
}

fn poisoned_before(op: LinkedOp) -> LinkedOp {
    let LinkedOp { kernel, .. } = op;
    let kernel = Kernel::cpu_only(Box::new(move |call: &mut CpuCall<'_>| {
        fill(call);
        kernel.run(call)
    }));
    LinkedOp { kernel, ..op }
}

fn poison(slot: usize, width: usize, rows: Rows) -> LinkedOp {
    let kernel = Kernel::cpu_only(Box::new(|call: &mut CpuCall<'_>| {
        fill(call);
        Ok(())
    }));
    let (ins, outs) = (vec![], vec![(slot, width)]);
    LinkedOp { id: "poison".into(), kernel, rows, ins, outs, weights: vec![], states: vec![], groups: vec![] }
}

#[test]
fn nothing_reads_what_is_dead_or_not_written_yet() {
    let parts = Parts::new(3);
    let (program, poisons) = poisoned(&parts);
    assert!(poisons > 40, "{poisons} values died");
    let run = |program, outs_max| {
        let mut bench = Bench::new(program, &Setup { outs_max, ..Setup::default() });
        let conv = bench.states.open();
        [bench.append(conv, &TOKENS).unwrap(), bench.append(conv, &TOKENS[..3]).unwrap()]
            .map(|seen| (seen.logits, seen.sampled, seen.streams))
    };
    assert_eq!(run(program, 16), run(parts.build().unwrap(), 16));
    assert_eq!(run(poisoned(&parts).0, 5), run(parts.build().unwrap(), 5));
}

#[test]
fn a_head_in_slices_gives_the_bits_of_one_in_one_piece_in_the_order_of_rows() {
    let wanted = [1usize, 2, 4, 5, 7, 9, 10];
    let whole = plain();
    for outs_max in [1, 2, 3, 7, 1000] {
        let mut bench = Bench::new(Parts::new(2).build().unwrap(), &Setup { outs_max, ..Setup::default() });
        let conv = bench.states.open();
        let rows = bench.rows(conv, &TOKENS, |index| wanted.contains(&index));
        let seen = bench.step(rows).unwrap();
        assert_eq!(seen.wanted, wanted.map(|row| (0, row as u32)), "slices of {outs_max}");
        assert_eq!(seen.logits, wanted.map(|row| whole.logits[row].clone()), "slices of {outs_max}");
        assert_eq!(seen.sampled, wanted.map(|row| whole.sampled[row]), "slices of {outs_max}");
    }
}

/// Drawn, not greedy: each wanted row must meet its own parameters in every slice.
#[test]
fn slices_keep_each_rows_sampling() {
    let run = |outs_max| {
        let mut bench = Bench::new(Parts::new(2).build().unwrap(), &Setup { outs_max, ..Setup::default() });
        let conv = bench.states.open();
        let mut rows = bench.rows(conv, &TOKENS, |index| index != 3);
        let drawn = |row: &Row| Sampling { temperature: 3.0, seed: u64::from(row.pos) << 7, ..Sampling::GREEDY };
        rows.iter_mut().for_each(|row| row.out = row.out.map(|_| drawn(row)));
        bench.step(rows).unwrap().sampled
    };
    let whole = run(16);
    assert_ne!(whole, [&plain().sampled[..3], &plain().sampled[4..]].concat(), "nothing was drawn");
    for outs_max in [1, 2, 5] {
        assert_eq!(run(outs_max), whole, "slices of {outs_max}");
    }
}

#[test]
fn a_step_without_wanted_rows_is_remembered() {
    let mut bench = Bench::small();
    let conv = bench.states.open();
    let rows = bench.rows(conv, &TOKENS[..5], |_| false);
    let silent = bench.step(rows).unwrap();
    assert!(silent.wanted.is_empty() && silent.logits.is_empty() && silent.streams.len() == 3);
    assert_eq!(bench.states.len(conv), Some(5));
    assert_eq!(bench.append(conv, &TOKENS[5..]).unwrap().logits, plain().logits[5..]);
    assert_eq!(bench.step(vec![]).unwrap().logits, Vec::<Vec<u32>>::new(), "a step of no rows is no error");
}

/// A segment over both kinds of rows runs its ops over the step's rows once a step, whatever is wanted.
#[test]
fn a_layer_that_also_takes_wanted_rows_runs_where_none_is_wanted() {
    let mut parts = Parts::new(2);
    let layer = &mut parts.recordings[1].1;
    let mut r = Recorder::default();
    let (tokens, outs) = (r.tokens(), r.outs());
    let h = r.port_in(ports::STREAM, tokens, Ty::F32, HIDDEN);
    take::record(&mut r, h);
    let mut taking = r.finish().unwrap();
    layer.domains = taking.domains;
    let id = ValueId(layer.values.len() as u32);
    layer.values.push(ValueDef { domain: outs, ..taking.values[1] });
    taking.ops[0].outs = vec![id];
    layer.ops.push(taking.ops.remove(0));
    for outs_max in [2, 16] {
        let mut bench = Bench::new(parts.build().unwrap(), &Setup { outs_max, ..Setup::default() });
        let conv = bench.states.open();
        let rows = bench.rows(conv, &TOKENS[..5], |_| false);
        bench.step(rows).unwrap();
        assert_eq!(bench.append(conv, &TOKENS[5..]).unwrap().logits, plain().logits[5..]);
    }
}

/// A head that also norms the step's rows: wanted rows are taken from that, and its slot is free for the op after it.
fn head_with_ops_over_tokens() -> Parts {
    let mut parts = Parts::new(2);
    let weights = [parts.norm, parts.layers[0].mlp_norm, parts.head];
    let rms = NormParams::rms(EPS);
    let mut r = Recorder::default();
    let tokens = r.tokens();
    let h = r.port_in(ports::STREAM, tokens, Ty::F32, HIDDEN);
    let normed = norm::record(&mut r, h, &[weights[0]], rms);
    let wanted = take::record(&mut r, normed);
    let again = norm::record(&mut r, h, &[weights[1]], rms);
    norm::record(&mut r, again, &[weights[1]], rms);
    let logits = matmul::record(&mut r, wanted, weights[2]);
    r.port_out(ports::LOGITS, logits);
    let sampled = sample::record(&mut r, logits);
    r.port_out(ports::SAMPLED, sampled);
    *parts.segment(SegmentName::Head) = r.finish().unwrap();
    parts
}

/// A later slice reads what the first one computed of the step's rows.
#[test]
fn what_slices_read_of_the_steps_rows_outlives_the_first_one() {
    for outs_max in [1, 5, 16] {
        let program = head_with_ops_over_tokens().build().unwrap();
        let mut bench = Bench::new(program, &Setup { outs_max, ..Setup::default() });
        let conv = bench.states.open();
        assert_eq!(bench.append(conv, &TOKENS).unwrap().logits, plain().logits, "slices of {outs_max}");
    }
}

#[test]
fn ops_over_the_steps_rows_run_once_a_step_whatever_the_slices() {
    let mut program = head_with_ops_over_tokens().build().unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    for op in program.segments.iter_mut().flat_map(|segment| &mut segment.ops).filter(|op| op.rows == Rows::Tokens) {
        let kernel = std::mem::replace(&mut op.kernel, Kernel::cpu_only(Box::new(|_| Ok(()))));
        let runs = runs.clone();
        op.kernel = Kernel::cpu_only(Box::new(move |call| {
            runs.fetch_add(1, Ordering::Relaxed);
            kernel.run(call)
        }));
    }
    let ops = 1 + 2 * 20 + 3;
    let mut bench = Bench::new(program, &Setup { outs_max: 5, ..Setup::default() });
    let conv = bench.states.open();
    bench.append(conv, &TOKENS).unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), ops);
}

/// Every value of every layer is a port, of the same name in each layer, so that none but the last layer's must live on.
#[test]
fn an_observer_finds_every_port_at_its_segments_end() {
    let mut parts = Parts::new(3);
    let names: Vec<String> = (1..20).map(|id| format!("v{id}")).collect();
    for (_, recording) in parts.recordings.iter_mut().filter(|(name, _)| matches!(name, SegmentName::Layer(_))) {
        let port = |(id, name): (usize, &String)| Port { direction: Direction::Out, name: name.clone(), value: ValueId(id as u32 + 1) };
        recording.ports.extend(names.iter().enumerate().map(port));
    }
    let observed = |program: Program| {
        let mut bench = Bench::new(program, &Setup::default());
        let conv = bench.states.open();
        let step = Step::prompt(bench.rows(conv, &TOKENS, |_| true));
        let mut seen: Vec<Vec<i32>> = vec![];
        let observe = |ports: &Ports<'_>| {
            let found = names.iter().filter_map(|name| ports.get(name));
            seen.extend(found.map(|(columns, rows)| (0..rows).flat_map(|row| columns.ints(row).to_vec()).collect()));
            Ok(())
        };
        bench.executor.run(&mut bench.states, &step, observe).unwrap();
        seen
    };
    let apart = Program::build_apart(&parts.description, &parts.encoded().unwrap()).unwrap();
    let expected = observed(apart);
    assert_eq!(expected.len(), 3 * names.len());
    assert_eq!(observed(parts.build().unwrap()), expected);
}

#[test]
fn two_conversations_in_one_step_are_each_alone_whatever_the_page_and_the_cut() {
    let other: Vec<u32> = TOKENS.iter().rev().copied().collect();
    let mut alone = Bench::small();
    let conv = alone.states.open();
    let expected = [plain().logits, alone.append(conv, &other).unwrap().logits];
    for page in [2, 3, 64] {
        for cut in [1, 2, 5, 6] {
            let mut bench = Bench::new(Parts::new(2).build().unwrap(), &Setup { page, rows_max: 12, outs_max: 3, ..Setup::default() });
            let convs = [bench.states.open(), bench.states.open()];
            let mut logits = [vec![], vec![]];
            for start in (0..TOKENS.len()).step_by(cut) {
                let part = start..TOKENS.len().min(start + cut);
                let rows = [bench.rows(convs[0], &TOKENS[part.clone()], |_| true), bench.rows(convs[1], &other[part], |_| true)];
                let seen = bench.step(rows.concat()).unwrap();
                seen.wanted.iter().zip(seen.logits).for_each(|((conv, _), row)| logits[*conv as usize].push(row));
            }
            assert!(logits == expected, "pages of {page}, cuts of {cut}");
        }
    }
}

#[test]
fn what_a_rewind_forgot_leaves_no_trace() {
    let mut bench = Bench::small();
    let conv = bench.states.open();
    bench.append(conv, &TOKENS[..6]).unwrap();
    bench.append(conv, &[9, 9, 9, 9, 9]).unwrap();
    bench.states.rewind(conv, 6).unwrap();
    assert_eq!(bench.append(conv, &TOKENS[6..]).unwrap().logits, plain().logits[6..]);
}

#[path = "cpu_fault_tests.rs"]
mod faults;
