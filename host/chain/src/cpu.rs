//! The CPU executor in exact mode: ops one after the other, on one thread, by their CPU twins.

use std::sync::Arc;

use coli_base::{Error, Result};
use coli_plugin_api::describe::SegmentName;
use coli_plugin_api::program::Builtin;
use coli_shaders::contract::{Columns, ColumnsMut, CpuCall, Data, RowAt, Sampling, WeightStore};

use crate::program::{LinkedOp, LinkedPort, LinkedSegment, Place, PlacedOperand, Program, Rows};
use crate::state::{OpStates, States};
use crate::step::{CheckedStep, Row, Step};

/// Runs a program's segments over the rows of a step.
pub struct CpuExecutor {
    program: Arc<Program>,
    weights: Arc<dyn WeightStore>,
    tokens_max: usize,
    outs_max: usize,
    /// Scratch memory, by the program's slots.
    slots: Vec<Vec<u32>>,
    /// Row inputs, by the program's inputs.
    inputs: Vec<Vec<u32>>,
    scratch: Vec<f32>,
}

/// The ports of a segment that has just run, for its rows of the step or for one slice of the wanted ones.
pub struct Ports<'a> {
    /// The segment.
    pub segment: SegmentName,
    /// The step's rows.
    pub tokens: &'a [RowAt],
    /// The wanted rows that this run was over.
    pub outs: &'a [RowAt],
    outputs: &'a [LinkedPort],
    slots: &'a [Vec<u32>],
}

impl<'a> Ports<'a> {
    /// The numbers of an output port and how many rows it has, `None` where the segment has no such port.
    pub fn get(&self, name: &str) -> Option<(Columns<'a>, usize)> {
        let port = self.outputs.iter().find(|port| port.spec.name == name)?;
        let rows = if port.spec.rows == Rows::Tokens { self.tokens.len() } else { self.outs.len() };
        let width = port.spec.width as usize;
        Some((Columns::new(&self.slots[port.slot], width, 0, width), rows))
    }
}

impl CpuExecutor {
    /// An executor for steps of at most `tokens_max` rows; wanted rows run in slices of `outs_max`.
    pub fn new(program: Arc<Program>, weights: Arc<dyn WeightStore>, tokens_max: usize, outs_max: usize) -> Result<Self> {
        assert!(tokens_max > 0 && outs_max > 0, "a step has rows");
        let rows = |rows: Rows| if rows == Rows::Tokens { tokens_max } else { outs_max };
        let slots = program.slots.iter().map(|slot| zeroed(rows(slot.rows), slot.width)).collect::<Result<_>>()?;
        let inputs = program.inputs.iter().map(|input| zeroed(rows(input.rows), input.width)).collect::<Result<_>>()?;
        Ok(Self { program, weights, tokens_max, outs_max, slots, inputs, scratch: vec![] })
    }

    /// Runs a step through all segments. `observe` sees the ports of each segment as it ends, and those of a segment over wanted rows
    /// once for each slice, or once without rows where none is wanted. When it fails, every conversation is as it was.
    pub fn run(&mut self, states: &mut States, step: &Step, mut observe: impl FnMut(&Ports<'_>) -> Result<()>) -> Result<()> {
        self.run_given(states, step, &[], &mut observe)
    }

    /// The same for a program with ports from outside, in its order.
    pub fn run_given(
        &mut self,
        states: &mut States,
        step: &Step,
        given: &[Data],
        observe: &mut dyn FnMut(&Ports<'_>) -> Result<()>,
    ) -> Result<()> {
        if step.rows.len() > self.tokens_max {
            return Err(Error::run(format!("a step of {} rows, at most {} were planned", step.rows.len(), self.tokens_max)));
        }
        let program = self.program.clone();
        let checked = step.check(states, program.description().vocab)?;
        self.give(&program, given);
        self.fill_inputs(&program, Rows::Tokens, step.rows.iter());
        let result = self.run_segments(&program, states, step, &checked, observe).and_then(|()| states.commit());
        if result.is_err() {
            states.abandon();
        }
        result
    }

    fn run_segments(
        &mut self,
        program: &Program,
        states: &mut States,
        step: &Step,
        checked: &CheckedStep,
        observe: &mut dyn FnMut(&Ports<'_>) -> Result<()>,
    ) -> Result<()> {
        for segment in &program.segments {
            if segment.sliced {
                self.run_sliced(segment, states, step, checked, observe)?;
            } else {
                self.run_ops(segment, states, checked, &checked.outs[..0], &[], true)?;
                observe(&self.ports(segment, &checked.tokens, &checked.outs[..0]))?;
            }
        }
        Ok(())
    }

    fn give(&mut self, program: &Program, given: &[Data]) {
        assert_eq!(given.len(), program.given.len(), "ports from outside");
        for (port, data) in program.given.iter().zip(given) {
            let slot = &mut self.slots[port.slot];
            match data {
                Data::F32(numbers) => slot.iter_mut().zip(numbers).for_each(|(word, number)| *word = number.to_bits()),
                Data::I32(ids) => slot.iter_mut().zip(ids).for_each(|(word, id)| *word = *id as u32),
            }
        }
    }

    fn run_sliced(
        &mut self,
        segment: &LinkedSegment,
        states: &mut States,
        step: &Step,
        checked: &CheckedStep,
        observe: &mut dyn FnMut(&Ports<'_>) -> Result<()>,
    ) -> Result<()> {
        let program = self.program.clone();
        // There is a first slice even where no row is wanted: what ops over the step's rows write is needed later all the same.
        for start in (0..checked.outs.len().max(1)).step_by(self.outs_max) {
            let slice = start..checked.outs.len().min(start.saturating_add(self.outs_max));
            let (outs, sampling) = (&checked.outs[slice.clone()], &checked.sampling[slice]);
            self.fill_inputs(&program, Rows::Outs, outs.iter().map(|at| &step.rows[at.step_row as usize]));
            self.run_ops(segment, states, checked, outs, sampling, start == 0)?;
            observe(&self.ports(segment, &checked.tokens, outs))?;
        }
        Ok(())
    }

    fn ports<'a>(&'a self, segment: &'a LinkedSegment, tokens: &'a [RowAt], outs: &'a [RowAt]) -> Ports<'a> {
        Ports { segment: segment.name, tokens, outs, outputs: &segment.outputs, slots: &self.slots }
    }

    fn fill_inputs<'r>(&mut self, program: &Program, rows: Rows, of: impl Iterator<Item = &'r Row> + Clone) {
        for (input, words) in program.inputs.iter().zip(&mut self.inputs).filter(|(input, _)| input.rows == rows) {
            for (row, words) in of.clone().zip(words.chunks_exact_mut(input.width)) {
                match input.kind {
                    Builtin::Token => words[0] = row.token,
                    Builtin::Position => words[0] = row.pos,
                    Builtin::Conversation => words[0] = row.conv.0,
                    Builtin::RotaryPosition => words.iter_mut().zip(row.rpos).for_each(|(word, pos)| *word = pos as u32),
                    Builtin::NextToken => unreachable!("refused when the program was checked"),
                }
            }
        }
    }

    /// Runs a segment's ops; those over the step's rows only when `tokens_too`.
    fn run_ops(
        &mut self,
        segment: &LinkedSegment,
        states: &mut States,
        checked: &CheckedStep,
        outs: &[RowAt],
        sampling: &[Sampling],
        tokens_too: bool,
    ) -> Result<()> {
        for (index, op) in segment.ops.iter().enumerate() {
            let rows = match op.rows {
                Rows::Tokens if !tokens_too => continue,
                Rows::Tokens => &checked.tokens[..],
                Rows::Outs if outs.is_empty() => continue,
                Rows::Outs => outs,
            };
            let sampling = if op.rows == Rows::Outs { sampling } else { &[] };
            self.run_op(op, rows, sampling, states)
                .map_err(|fault| Error::run(format!("{} op {index} {}: {fault}", segment.name, op.id)))?;
        }
        Ok(())
    }

    fn run_op(&mut self, op: &LinkedOp, rows: &[RowAt], sampling: &[Sampling], states: &mut States) -> std::result::Result<(), String> {
        // Outputs never share a slot with inputs, so they can be borrowed apart by taking them out.
        let mut taken: Vec<(usize, Vec<u32>)> = op.outs.iter().map(|(slot, _)| (*slot, std::mem::take(&mut self.slots[*slot]))).collect();
        let mut outs: Vec<ColumnsMut<'_>> =
            taken.iter_mut().zip(&op.outs).map(|((_, words), (_, width))| ColumnsMut::new(words, *width)).collect();
        let ins: Vec<Columns<'_>> = op.ins.iter().map(|operand| columns(operand, &self.slots, &self.inputs)).collect();
        let mut call = CpuCall {
            rows,
            ins: &ins,
            outs: &mut outs,
            weights: &op.weights,
            groups: &op.groups,
            store: &*self.weights,
            states: &mut OpStates { states, ids: &op.states },
            sampling,
            scratch: &mut self.scratch,
        };
        let result = (op.kernel)(&mut call);
        for (slot, words) in taken {
            self.slots[slot] = words;
        }
        result
    }
}

fn columns<'a>(operand: &PlacedOperand, slots: &'a [Vec<u32>], inputs: &'a [Vec<u32>]) -> Columns<'a> {
    let words = match operand.place {
        Place::Slot(slot) => &slots[slot],
        Place::Input(input) => &inputs[input],
    };
    Columns::new(words, operand.stride, operand.col0, operand.ncols)
}

fn zeroed(rows: usize, width: usize) -> Result<Vec<u32>> {
    let no_memory = || Error::run(format!("no memory for {rows} rows of {width} numbers"));
    let len = rows.checked_mul(width).ok_or_else(no_memory)?;
    let mut words = Vec::new();
    words.try_reserve_exact(len).map_err(|_| no_memory())?;
    words.resize(len, 0);
    Ok(words)
}

#[cfg(test)]
#[path = "cpu_tests.rs"]
mod tests;
