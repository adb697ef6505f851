//! The CPU executor: ops one after the other, each by its CPU twin or, in fast mode, by its fast kernel.
//!
//! The thread that calls leads a [`Crew`] through a step, which is one parallel region; an op may use all of its threads.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use coli_base::crew::{Crew, Region};
use coli_base::{Error, Result};
use coli_plugin_api::describe::SegmentName;
use coli_plugin_api::program::ports;
use coli_shaders::contract::{Columns, ColumnsMut, CpuCall, Data, Fast, RowAt, RowClass, Sampling, Team, WeightStore};
use coli_shaders::fast::{self, Level};

use crate::inputs::{self, IdSource};
pub use crate::ports::Ports;
use crate::profile::{Counted, Profile};
use crate::program::{LinkedOp, LinkedPort, LinkedSegment, Place, PlacedOperand, Program, Rows, Slot};
use crate::state::{OpStates, States};
use crate::step::{CheckedStep, Step};

/// Runs a program's segments over the rows of a step.
pub struct CpuExecutor {
    program: Arc<Program>,
    weights: Arc<dyn WeightStore>,
    ids: Option<Arc<dyn IdSource>>,
    /// The segments that it runs, and the row inputs that they read.
    segments: Range<usize>,
    used: Vec<usize>,
    tokens_max: usize,
    outs_max: usize,
    /// Rows of a step that a segment's ops run over together.
    tile: usize,
    /// Scratch memory, by the program's slots.
    slots: Vec<Vec<u32>>,
    /// Row inputs, by the program's inputs.
    inputs: Vec<Vec<u32>>,
    scratch: Vec<f32>,
    crew: Arc<Crew>,
    /// Instructions and memory of fast mode; `None` in exact mode.
    fast: Option<(Level, Arc<fast::Scratch>)>,
    profile: Option<Profile>,
}

/// A crew's region as ops see it.
pub(crate) struct Threads<'a>(pub &'a Region);

impl Team for Threads<'_> {
    fn threads(&self) -> usize {
        self.0.threads()
    }

    fn run(&self, part: &(dyn Fn(usize) + Sync)) {
        self.0.run(part);
    }
}

/// A step that is running.
pub(crate) struct Run<'s> {
    pub step: &'s Step,
    pub checked: CheckedStep,
    /// The token that was sampled after each row, where there is one by now.
    pub sampled: Vec<Option<u32>>,
}

/// The rows that an op runs over.
struct Over<'a> {
    rows: &'a [RowAt],
    /// The row of ports and row inputs that is the first of these. All other values of the step's rows begin with the first of these.
    first: usize,
    sampling: &'a [Sampling],
    class: RowClass,
}

impl Over<'_> {
    fn first_in(&self, slot: &Slot) -> usize {
        if slot.port { self.first } else { 0 }
    }
}

impl CpuExecutor {
    /// An executor for steps of at most `tokens_max` rows; wanted rows run in slices of `outs_max`.
    pub fn new(program: Arc<Program>, weights: Arc<dyn WeightStore>, tokens_max: usize, outs_max: usize) -> Result<Self> {
        assert!(tokens_max > 0 && outs_max > 0, "a step has rows");
        let rows = |rows: Rows| if rows == Rows::Tokens { tokens_max } else { outs_max };
        let slots = program.slots.iter().map(|slot| zeroed(rows(slot.rows), slot.width)).collect::<Result<_>>()?;
        let inputs = program.inputs.iter().map(|input| zeroed(rows(input.rows), input.width)).collect::<Result<_>>()?;
        let segments = 0..program.segments.len();
        let used = inputs::used(&program, &segments);
        Ok(Self {
            program,
            weights,
            ids: None,
            segments,
            used,
            tokens_max,
            outs_max,
            tile: tokens_max,
            slots,
            inputs,
            scratch: vec![],
            crew: Arc::new(Crew::new(1)?),
            fast: None,
            profile: None,
        })
    }

    /// The same with more threads, and in fast mode where a level is given.
    pub fn with_crew(mut self, crew: Arc<Crew>, level: Option<Level>) -> Self {
        self.fast = level.map(|level| (level, Arc::new(fast::Scratch::new(crew.threads()))));
        self.crew = crew;
        self
    }

    /// Begins a profile of the steps that follow, or ends it; gives the one so far.
    pub(crate) fn set_profile(&mut self, wanted: bool) -> Option<Profile> {
        std::mem::replace(&mut self.profile, wanted.then(Profile::default))
    }

    /// The same with a plugin's `ids` function, for a program with inputs of that source.
    pub fn with_ids(mut self, ids: Option<Arc<dyn IdSource>>) -> Self {
        self.ids = ids;
        self
    }

    /// The same for a part of the program's segments.
    pub(crate) fn with_segments(mut self, segments: Range<usize>) -> Self {
        self.used = inputs::used(&self.program, &segments);
        self.segments = segments;
        self
    }

    /// Lets the ops of a segment run over so many rows before the next rows follow, and each segment over all rows before the next one.
    /// No answer depends on it.
    pub fn set_tile(&mut self, rows: usize) {
        self.tile = rows.max(1);
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
        let mut run = self.begin(states, step)?;
        self.give(given);
        let crew = self.crew.clone();
        let result = crew.lead(|region| self.run_segments(states, &mut run, &Threads(region), observe)).and_then(|()| states.commit());
        if result.is_err() {
            states.abandon();
        }
        result
    }

    /// Checks a step, makes room for it, and fills the row inputs. Nothing has changed when it fails.
    pub(crate) fn begin<'s>(&mut self, states: &mut States, step: &'s Step) -> Result<Run<'s>> {
        inputs::begin(&self.program, &self.used, self.tokens_max, self.ids.as_deref(), states, step, &mut self.inputs)
    }

    /// Runs the segments, after [`Self::begin`].
    pub(crate) fn run_segments(
        &mut self,
        states: &mut States,
        run: &mut Run<'_>,
        team: &dyn Team,
        observe: &mut dyn FnMut(&Ports<'_>) -> Result<()>,
    ) -> Result<()> {
        let program = self.program.clone();
        for segment in &program.segments[self.segments.clone()] {
            if matches!(segment.name, SegmentName::Draft(_)) {
                inputs::fill_next(&program, segment, run, &mut self.inputs).map_err(|error| error.within(segment.name))?;
            }
            if segment.sliced {
                self.run_sliced(segment, states, run, team, observe)?;
            } else {
                let rows = run.checked.tokens.len();
                for start in (0..rows).step_by(self.tile) {
                    let tokens = start..rows.min(start.saturating_add(self.tile));
                    self.run_ops(segment, states, run, team, tokens, None)?;
                }
                observe(&self.ports(segment, &run.checked.tokens, &run.checked.outs[..0]))?;
            }
        }
        Ok(())
    }

    fn give(&mut self, given: &[Data]) {
        assert_eq!(given.len(), self.program.given.len(), "ports from outside");
        for (port, data) in self.program.given.iter().zip(given) {
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
        run: &mut Run<'_>,
        team: &dyn Team,
        observe: &mut dyn FnMut(&Ports<'_>) -> Result<()>,
    ) -> Result<()> {
        let program = self.program.clone();
        let wanted = run.checked.outs.len();
        // There is a first slice even where no row is wanted: what ops over the step's rows write is needed later all the same.
        for start in (0..wanted.max(1)).step_by(self.outs_max) {
            let slice = start..wanted.min(start.saturating_add(self.outs_max));
            let outs = &run.checked.outs[slice.clone()];
            for number in segment.inputs.iter().filter(|number| program.inputs[**number].rows == Rows::Outs) {
                let rows = outs.iter().map(|at| &run.step.rows[at.step_row as usize]);
                inputs::fill(&program.inputs[*number], rows, &mut self.inputs[*number]);
            }
            let tokens = if start == 0 { 0..run.checked.tokens.len() } else { 0..0 };
            self.run_ops(segment, states, run, team, tokens, Some(slice))?;
            let ports = self.ports(segment, &run.checked.tokens, outs);
            if let Some((sampled, rows)) = ports.get(ports::SAMPLED) {
                let rows = outs.iter().take(rows).enumerate();
                rows.for_each(|(row, at)| run.sampled[at.step_row as usize] = u32::try_from(sampled.ints(row)[0]).ok());
            }
            observe(&ports)?;
        }
        Ok(())
    }

    /// The first `rows` rows of a slot, for another executor.
    pub(crate) fn port_words(&self, port: &LinkedPort, rows: usize) -> &[u32] {
        &self.slots[port.slot][..rows * port.spec.width as usize]
    }

    /// Takes a port's rows over from another executor.
    pub(crate) fn take_port(&mut self, port: &LinkedPort, words: &[u32]) {
        self.slots[port.slot][..words.len()].copy_from_slice(words);
    }

    /// Fills all that no op of the next step has written with NaN, so that a row which should have come from somewhere is missed.
    pub(crate) fn poison(&mut self) {
        self.slots.iter_mut().chain(&mut self.inputs).for_each(|words| words.fill(f32::NAN.to_bits()));
    }

    fn ports<'a>(&'a self, segment: &'a LinkedSegment, tokens: &'a [RowAt], outs: &'a [RowAt]) -> Ports<'a> {
        Ports::in_slots(segment.name, tokens, outs, &segment.outputs, &self.slots)
    }

    /// Runs a segment's ops over these rows of the step, where there are any, and over this slice of the wanted ones.
    fn run_ops(
        &mut self,
        segment: &LinkedSegment,
        states: &mut States,
        run: &Run<'_>,
        team: &dyn Team,
        tokens: Range<usize>,
        slice: Option<Range<usize>>,
    ) -> Result<()> {
        let checked = &run.checked;
        let slice = slice.unwrap_or_default();
        let (outs, sampling) = (&checked.outs[slice.clone()], &checked.sampling[slice]);
        for (index, op) in segment.ops.iter().enumerate() {
            let over = match op.rows {
                Rows::Tokens => Over { rows: &checked.tokens[tokens.clone()], first: tokens.start, sampling: &[], class: run.step.class },
                // Wanted rows are few, whatever the step is for.
                Rows::Outs => Over { rows: outs, first: 0, sampling, class: RowClass::Step },
            };
            if over.rows.is_empty() {
                continue;
            }
            self.run_op(op, &over, states, team).map_err(|fault| Error::run(format!("{} op {index} {}: {fault}", segment.name, op.id)))?;
        }
        Ok(())
    }

    fn run_op(&mut self, op: &LinkedOp, over: &Over<'_>, states: &mut States, team: &dyn Team) -> std::result::Result<(), String> {
        // Outputs never share a slot with inputs, so they can be borrowed apart by taking them out.
        let mut taken: Vec<(usize, Vec<u32>)> = op.outs.iter().map(|(slot, _)| (*slot, std::mem::take(&mut self.slots[*slot]))).collect();
        let mut outs: Vec<ColumnsMut<'_>> = taken
            .iter_mut()
            .zip(&op.outs)
            .map(|((slot, words), (_, width))| ColumnsMut::new(&mut words[over.first_in(&self.program.slots[*slot]) * width..], *width))
            .collect();
        let mut scratch = std::mem::take(&mut self.scratch);
        let ins: Vec<Columns<'_>> = op.ins.iter().map(|operand| self.columns(operand, over)).collect();
        let counted = self.profile.as_ref().map(|_| (Counted::new(&*self.weights), Instant::now()));
        let fast = self.fast.as_ref().map(|(level, scratch)| Fast { level: *level, class: over.class, scratch });
        let mut call = CpuCall {
            rows: over.rows,
            ins: &ins,
            outs: &mut outs,
            weights: &op.weights,
            groups: &op.groups,
            store: counted.as_ref().map_or(&*self.weights, |(store, _)| store),
            states: &mut OpStates { states, ids: &op.states },
            sampling: over.sampling,
            scratch: &mut scratch,
            team,
            fast: fast.as_ref(),
        };
        let result = op.kernel.run(&mut call);
        let spent = counted.map(|(store, start)| (start.elapsed(), store.bytes()));
        if let (Some(profile), Some((time, bytes))) = (&mut self.profile, spent) {
            // A table gives rows, whose bytes are as good as nothing.
            profile.add(&op.id, time, if op.id.starts_with("gather@") { 0 } else { bytes });
        }
        self.scratch = scratch;
        for (slot, words) in taken {
            self.slots[slot] = words;
        }
        result
    }

    /// An operand from the first of these rows on. One of the step's rows that an op over wanted rows reads begins at row 0.
    fn columns(&self, operand: &PlacedOperand, over: &Over<'_>) -> Columns<'_> {
        let (words, first) = match operand.place {
            Place::Slot(slot) => (&self.slots[slot], over.first_in(&self.program.slots[slot])),
            Place::Input(input) => (&self.inputs[input], over.first),
        };
        Columns::new(&words[first * operand.stride..], operand.stride, operand.col0, operand.ncols)
    }
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
