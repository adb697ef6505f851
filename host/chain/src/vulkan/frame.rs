//! A frame: consecutive segments, planned and recorded for a class and caps of rows.

use std::collections::HashSet;
use std::ops::Range;

use coli_base::{Error, Result};
use coli_plugin_api::describe::SegmentName;
use coli_plugin_api::program::{StateId, Ty, WeightId};
use coli_shaders::contract::RowClass;
use coli_shaders::device::{Arg, Dispatch, Plan};
use coli_vk::{Bound, Buffer, Commands, Recorder};

use super::device::VulkanDevice;
use super::hazards::{Hazards, Memory};
use super::own;
use super::planner::{Planner, check_ops, failed};
use super::weights::DeviceWeights;
use super::words::{Caps, FAULT_WORDS, StepGrid, StepTable, Words, is_live, workgroups};
use crate::program::{LinkedOp, Place, PlacedOperand, Program, Rows};
use crate::state::Layout;

/// Which recording.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct FrameKey {
    pub segments: Range<usize>,
    pub class: RowClass,
    pub caps: Caps,
    /// Whether the time of each op is taken.
    pub timed: bool,
}

/// An op with its plan, and where what the plan shares lies.
pub(super) struct PlannedOp {
    pub segment: SegmentName,
    pub index: usize,
    pub id: String,
    pub plan: Plan,
    /// Bytes of the matrices that it reads, whatever its rows.
    pub weight_bytes: u64,
    /// Of an op over experts: how many there are, how many a row takes, and the bytes of one.
    pub experts: Option<(u64, u64, u64)>,
    /// The op's place in the program: its segment and its number there.
    at: (usize, usize),
    scratch: Vec<Range<u64>>,
    tables: Vec<usize>,
    /// By dispatch.
    grids: Vec<Option<usize>>,
}

/// Numbers of wanted rows that come back with every frame, since the host reads them after each: where a slot's words go.
pub(super) struct Readout {
    pub slot: usize,
    pub at: u64,
    pub words: u64,
}

/// A planned frame, recorded when it first runs.
pub(super) struct Frame {
    pub ops: Vec<PlannedOp>,
    pub words: Words,
    pub tables: Vec<StepTable>,
    pub grids: Vec<StepGrid>,
    pub readouts: Vec<Readout>,
    pub scratch_bytes: u64,
    pub commands: Option<Commands>,
    /// Dispatches, and barriers between them.
    pub dispatches: usize,
    pub barriers: usize,
}

/// What commands name.
pub(super) struct Buffers<'a> {
    pub device: &'a VulkanDevice,
    pub weights: &'a DeviceWeights,
    pub layouts: &'a [Option<Layout>],
    pub slots: &'a [Option<Buffer>],
    pub step: &'a Buffer,
    pub staging: &'a Buffer,
    pub scratch: &'a Buffer,
    pub readback: &'a Buffer,
}

/// Bytes of the head of push constants.
const HEAD_BYTES: usize = 16;
/// An op's parts of scratch memory begin at multiples of this.
const SCRATCH_ALIGN: u64 = 256;

fn arg_bytes(arg: Arg) -> usize {
    match arg {
        Arg::In(_) | Arg::Out(_) | Arg::OutAgain(_) => 12,
        Arg::Vector(_) | Arg::Matrix(_) | Arg::Experts(..) | Arg::Scratch(_) | Arg::Table(_) | Arg::Null => 8,
        Arg::State(_) | Arg::StateMut(_) => 16,
        Arg::Sampling | Arg::Word(_) | Arg::Float(_) => 4,
    }
}

/// Bytes of a dispatch's push constants.
pub(super) fn push_bytes(dispatch: &Dispatch) -> usize {
    HEAD_BYTES + dispatch.args.iter().map(|arg| arg_bytes(*arg)).sum::<usize>()
}

impl Frame {
    /// Plans a frame; `pages` words of addresses of pages and `classes` of states are part of every step.
    pub fn plan(planner: &Planner<'_>, key: &FrameKey, pages: usize, classes: usize, outs_max: usize) -> Result<Self> {
        let program = planner.program;
        let (mut ops, mut tables, mut grids) = (vec![], vec![], vec![]);
        let mut scratch_bytes = 0;
        for number in key.segments.clone() {
            let segment = &program.segments[number];
            for (index, op) in segment.ops.iter().enumerate() {
                let plan = planner.plan(op, key.class, key.caps).map_err(|why| failed(segment.name, op, &why))?;
                let (scratch, end) = scratch_ranges(&plan);
                scratch_bytes = scratch_bytes.max(end);
                let of_tables = plan.tables.iter().map(|table| table_number(&mut tables, op, table)).collect();
                let of_grids = plan.dispatches.iter().map(|dispatch| grid_number(&mut grids, op.rows, dispatch)).collect();
                let at = (number, index);
                let (weight_bytes, experts) = read_bytes(planner.weights, op, &plan);
                ops.push(PlannedOp {
                    weight_bytes,
                    experts,
                    segment: segment.name,
                    index,
                    id: op.id.clone(),
                    plan,
                    at,
                    scratch,
                    tables: of_tables,
                    grids: of_grids,
                });
            }
        }
        check_ops(ops.len())?;
        let words = Words::new(program, key.caps, pages, classes, &tables, grids.len());
        let readouts = readouts(program, key, outs_max as u64);
        Ok(Self { ops, words, tables, grids, readouts, scratch_bytes, commands: None, dispatches: 0, barriers: 0 })
    }

    /// Bytes that come back with every run: the fault and the read-outs.
    pub fn readback_bytes(&self) -> u64 {
        self.readouts.last().map_or(FAULT_WORDS as u64 * 4, |last| last.at + last.words * 4)
    }

    /// Records the commands.
    pub fn record(&mut self, program: &Program, key: &FrameKey, buffers: &Buffers<'_>) -> Result<()> {
        let stamps = if key.timed { self.ops.len() as u32 + 1 } else { 0 };
        let mut failure = Ok(());
        let (mut dispatches, mut barriers) = (0, 0);
        let frame = &*self;
        let recorded = Commands::record(buffers.device.device(), stamps, |recorder| {
            let mut writer = Writer { frame, program, buffers, recorder, key, hazards: Hazards::default(), dispatches: 0, barriers: 0 };
            failure = writer.all();
            (dispatches, barriers) = (writer.dispatches, writer.barriers);
            Ok(())
        });
        failure?;
        self.commands = Some(recorded?);
        (self.dispatches, self.barriers) = (dispatches, barriers);
        Ok(())
    }
}

/// What an op's plan reads of weights: bytes of matrices, and of experts how many there are, how many a row takes, and the bytes of one.
fn read_bytes(weights: &DeviceWeights, op: &LinkedOp, plan: &Plan) -> (u64, Option<(u64, u64, u64)>) {
    // A table gives rows, whose bytes are as good as nothing.
    if op.id.starts_with("gather@") {
        return (0, None);
    }
    let args = || plan.dispatches.iter().flat_map(|dispatch| &dispatch.args);
    let named: HashSet<WeightId> = args()
        .filter_map(|arg| match arg {
            Arg::Matrix(index) => Some(op.weights[*index]),
            _ => None,
        })
        .collect();
    let bytes = named.iter().filter_map(|id| weights.bytes(*id)).sum();
    let experts = args().find_map(|arg| match arg {
        Arg::Experts(index, layer) => weights.expert_bytes(op.groups[*index], *layer),
        _ => None,
    });
    let taken = op.ins.get(1).map_or(0, |ids| ids.ncols as u64);
    (bytes, experts.map(|(count, bytes)| (count, taken, bytes)))
}

fn scratch_ranges(plan: &Plan) -> (Vec<Range<u64>>, u64) {
    let mut end = 0u64;
    let ranges = plan.scratch.iter().map(|scratch| {
        let start = end;
        end = start.saturating_add(scratch.words.saturating_mul(4)).next_multiple_of(SCRATCH_ALIGN);
        start..end
    });
    (ranges.collect(), end)
}

/// The number of an op's table among those of the frame.
fn table_number(tables: &mut Vec<StepTable>, op: &LinkedOp, table: &coli_shaders::device::RowTable) -> usize {
    let operand = &op.ins[table.input];
    // The planner has checked that it is a row input.
    let Place::Input(input) = operand.place else { return 0 };
    let columns = operand.col0..operand.col0 + operand.ncols;
    let same = |known: &StepTable| {
        (&known.key, known.input, &known.columns, known.rows) == (&table.key, input, &columns, op.rows)
            && known.width == table.width as usize
    };
    tables.iter().position(same).unwrap_or_else(|| {
        let fill = table.fill.clone();
        tables.push(StepTable {
            key: table.key.clone(),
            input,
            columns: columns.clone(),
            width: table.width as usize,
            rows: op.rows,
            fill,
        });
        tables.len() - 1
    })
}

fn grid_number(grids: &mut Vec<StepGrid>, rows: Rows, dispatch: &Dispatch) -> Option<usize> {
    let grid = StepGrid { grid: dispatch.grid, rows };
    is_live(&dispatch.grid).then(|| {
        grids.iter().position(|known| *known == grid).unwrap_or_else(|| {
            grids.push(grid);
            grids.len() - 1
        })
    })
}

/// Ids of wanted rows, one a row, come back by themselves.
fn readouts(program: &Program, key: &FrameKey, outs_max: u64) -> Vec<Readout> {
    let mut at = FAULT_WORDS as u64 * 4;
    let ports = program.segments[key.segments.clone()].iter().flat_map(|segment| &segment.outputs);
    let small = ports.filter(|port| port.spec.rows == Rows::Outs && port.spec.ty == Ty::I32 && port.spec.width == 1);
    let readout = |slot: usize| {
        let readout = Readout { slot, at, words: outs_max.min(key.caps.outs.into()) };
        at += readout.words * 4;
        readout
    };
    small.map(|port| port.slot).map(readout).collect()
}

/// Writes a frame's commands.
struct Writer<'w, 'r> {
    frame: &'w Frame,
    program: &'w Program,
    buffers: &'w Buffers<'w>,
    recorder: &'w mut Recorder<'r>,
    key: &'w FrameKey,
    hazards: Hazards,
    dispatches: usize,
    barriers: usize,
}

impl Writer<'_, '_> {
    fn all(&mut self) -> Result<()> {
        let (frame, buffers) = (self.frame, self.buffers);
        let (step, staging, readback) = (buffers.step, buffers.staging, buffers.readback);
        let front = &frame.words.front;
        self.recorder.copy(staging, 0, step, 0, FAULT_WORDS as u64 * 4)?;
        self.recorder.copy(staging, front.start as u64 * 4, step, front.start as u64 * 4, front.len() as u64 * 4)?;
        self.recorder.barrier_all();
        self.recorder.keep(step);
        self.recorder.keep(buffers.scratch);
        buffers.slots.iter().flatten().for_each(|slot| self.recorder.keep(slot));
        self.stamp()?;
        for (number, op) in frame.ops.iter().enumerate() {
            self.op(number, op)?;
            if self.key.timed {
                self.recorder.barrier();
                self.stamp()?;
            }
        }
        self.recorder.barrier_all();
        self.recorder.copy(step, 0, readback, 0, FAULT_WORDS as u64 * 4)?;
        for readout in &frame.readouts {
            let slot = self.slot(readout.slot)?.clone();
            self.recorder.copy(&slot, 0, readback, readout.at, readout.words * 4)?;
        }
        Ok(())
    }

    fn stamp(&mut self) -> Result<()> {
        if self.key.timed {
            self.recorder.stamp()?;
        }
        Ok(())
    }

    fn op(&mut self, number: usize, op: &PlannedOp) -> Result<()> {
        let linked = &self.program.segments[op.at.0].ops[op.at.1];
        for (index, dispatch) in op.plan.dispatches.iter().enumerate() {
            self.own(op, linked, index)?;
            let (reads, writes) = touched(op, linked, dispatch);
            if self.hazards.note(reads, writes) {
                self.recorder.barrier();
                self.barriers += 1;
            }
            let push = self.push(number, op, linked, dispatch)?;
            let pipeline = self.buffers.device.pipeline(dispatch, push.len() as u32)?;
            self.dispatches += 1;
            match op.grids[index] {
                Some(grid) => {
                    let at = self.frame.words.grids[grid] as u64 * 4;
                    self.recorder.dispatch_indirect(&pipeline, &push, self.buffers.step, at)?;
                }
                None => {
                    let cap = self.key.caps.of(linked.rows);
                    let groups = dispatch.grid.map(|extent| workgroups(extent, cap, &[]));
                    self.recorder.dispatch(&pipeline, &push, groups)?;
                }
            }
        }
        self.own(op, linked, op.plan.dispatches.len())
    }

    /// Runs the kernel of a plugin's own where it stands behind so many dispatches of its plan.
    fn own(&mut self, op: &PlannedOp, linked: &LinkedOp, after: usize) -> Result<()> {
        let Some(bound) = op.plan.bound.as_ref().filter(|bound| bound.after == after) else { return Ok(()) };
        let kernel = self.buffers.device.own_kernel(bound)?;
        let weights = linked.weights.iter().map(|id| self.buffers.weights.vector(*id)).collect::<Result<Vec<_>>>()?;
        let (reads, writes) = own::parts(bound);
        let memory = |parts: &[usize]| parts.iter().map(|part| Memory::Scratch(op.scratch[*part].clone())).collect();
        if self.hazards.note(memory(&reads), memory(&writes)) {
            self.recorder.barrier();
            self.barriers += 1;
        }
        let buffer = self.buffers.scratch;
        let part = |part: usize| Bound { buffer, at: op.scratch[part].start, bytes: own::part_bytes(&op.plan, part) };
        let outs = bound.ins + bound.outs;
        let mut list: Vec<Bound<'_>> = (0..outs).map(part).collect();
        list.extend(weights.iter().map(Bound::whole));
        list.extend([part(outs), Bound::whole(&kernel.params)]);
        self.dispatches += 1;
        Ok(self.recorder.dispatch_bound(&kernel.pipeline, &list, bound.groups)?)
    }

    fn push(&mut self, number: usize, op: &PlannedOp, linked: &LinkedOp, dispatch: &Dispatch) -> Result<Vec<u8>> {
        let words = &self.frame.words;
        let mut push = Push::default();
        push.address(self.buffers.step.address());
        push.word(words.rows_at(linked.rows) as u32);
        push.word(number as u32);
        for arg in &dispatch.args {
            match *arg {
                Arg::In(index) => self.operand(&mut push, &linked.ins[index])?,
                Arg::Out(index) | Arg::OutAgain(index) => {
                    let (slot, width) = linked.outs[index];
                    let operand = PlacedOperand { place: Place::Slot(slot), stride: width, col0: 0, ncols: width };
                    self.operand(&mut push, &operand)?;
                }
                Arg::Vector(index) => self.weight(&mut push, &self.buffers.weights.vector(linked.weights[index])?),
                Arg::Matrix(index) => self.weight(&mut push, &self.buffers.weights.matrix(linked.weights[index])?),
                Arg::Experts(index, layer) => self.weight(&mut push, &self.buffers.weights.experts(linked.groups[index], layer)?),
                Arg::State(index) | Arg::StateMut(index) => self.state(&mut push, linked.states[index])?,
                Arg::Scratch(index) => push.address(self.buffers.scratch.address() + op.scratch[index].start),
                Arg::Table(index) => push.address(self.buffers.step.address() + words.tables[op.tables[index]] as u64 * 4),
                Arg::Sampling => push.word(words.sampling as u32),
                Arg::Null => push.address(self.buffers.step.address()),
                Arg::Word(word) => push.word(word),
                Arg::Float(number) => push.word(number.to_bits()),
            }
        }
        Ok(push.0)
    }

    fn operand(&self, push: &mut Push, operand: &PlacedOperand) -> Result<()> {
        let (address, port) = match operand.place {
            Place::Slot(slot) => (self.slot(slot)?.address(), self.program.slots[slot].port),
            Place::Input(input) => (self.buffers.step.address() + self.frame.words.inputs[input] as u64 * 4, false),
        };
        push.address(address + operand.col0 as u64 * 4);
        push.word(operand.stride as u32 | u32::from(port) << 31);
        Ok(())
    }

    fn weight(&mut self, push: &mut Push, buffer: &Buffer) {
        self.recorder.keep(buffer);
        push.address(buffer.address());
    }

    fn state(&self, push: &mut Push, id: StateId) -> Result<()> {
        let layout = self.buffers.layouts.get(id.0 as usize).copied().flatten();
        let layout = layout.ok_or_else(|| Error::run(format!("state {} is on another executor", id.0)))?;
        let words = &self.frame.words;
        push.word(layout.class.map_or(words.accumulators, |class| words.entries[class]) as u32);
        push.word(layout.page_rows);
        push.word(layout.width);
        push.word(layout.word | u32::from(layout.half) << 31);
        Ok(())
    }

    fn slot(&self, slot: usize) -> Result<&Buffer> {
        self.buffers.slots[slot].as_ref().ok_or_else(|| Error::run(format!("slot {slot} is on another executor")))
    }
}

#[derive(Default)]
struct Push(Vec<u8>);

impl Push {
    fn word(&mut self, word: u32) {
        self.0.extend_from_slice(&word.to_ne_bytes());
    }

    fn address(&mut self, address: u64) {
        self.word(address as u32);
        self.word((address >> 32) as u32);
    }
}

/// The memory that a dispatch reads and writes.
fn touched(op: &PlannedOp, linked: &LinkedOp, dispatch: &Dispatch) -> (Vec<Memory>, Vec<Memory>) {
    let (mut reads, mut writes) = (vec![], vec![]);
    for arg in &dispatch.args {
        match *arg {
            Arg::In(index) => {
                if let Place::Slot(slot) = linked.ins[index].place {
                    reads.push(Memory::Slot(slot));
                }
            }
            Arg::Out(index) | Arg::OutAgain(index) => writes.push(Memory::Slot(linked.outs[index].0)),
            Arg::State(index) => reads.push(Memory::State(linked.states[index])),
            Arg::StateMut(index) => writes.push(Memory::State(linked.states[index])),
            Arg::Scratch(index) => writes.push(Memory::Scratch(op.scratch[index].clone())),
            _ => {}
        }
    }
    (reads, writes)
}
