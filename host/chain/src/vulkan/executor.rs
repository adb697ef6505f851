//! Runs a step on a device, frame by frame.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use coli_base::{Error, Result};
use coli_plugin_api::describe::SegmentName;
use coli_plugin_api::program::{StateId, ports};
use coli_shaders::contract::Data;
use coli_shaders::device::StateForm;
use coli_vk::memory::Pool;
use coli_vk::{Buffer, Commands};

use super::device::VulkanDevice;
use super::frame::{Buffers, Frame, FrameKey};
use super::memory::Memory;
use super::pages::{DevicePages, Jobs};
use super::planner::{Planner, form_all};
use super::ports::{bytes, bytes_mut, used_slots};
use super::weights::DeviceWeights;
use super::words::{Caps, FAULT_WORDS};
use super::{fault, step};
use crate::cpu::{Ports, Run};
use crate::inputs::{self, IdSource};
use crate::ports::PortSource as _;
use crate::profile::Profile;
use crate::program::{LinkedSegment, Program, Rows};
use crate::state::{Layout, Len, PageStore, States};
use crate::step::Step;

/// Rows of a frame times positions that they see, above which its segments are submitted one by one and in fewer rows, so that no submit
/// runs into a driver's watchdog.
const WORK_MAX: u64 = 1 << 22;
/// Rows of a prompt's frame are a multiple of this, times a power of two.
const PROMPT_ROWS: usize = 64;
/// Rows of a step's largest frame.
const STEP_ROWS: usize = 16;

/// What an executor is made for.
pub(crate) struct Setup {
    pub program: Arc<Program>,
    pub device: Arc<VulkanDevice>,
    pub weights: Arc<DeviceWeights>,
    pub ids: Option<Arc<dyn IdSource>>,
    pub segments: Range<usize>,
    pub tokens_max: usize,
    pub outs_max: usize,
    pub fast: bool,
    /// Positions of a conversation, at most.
    pub context: u32,
}

/// Runs a program's segments on a device.
pub struct VulkanExecutor {
    pub(super) setup: Setup,
    jobs: Jobs,
    forms: HashMap<StateId, StateForm>,
    layouts: Vec<Option<Layout>>,
    classes: usize,
    used: Vec<usize>,
    tile: usize,
    /// Whether an observer wants the ports of every segment.
    stops: bool,
    work_max: u64,
    pub(super) slots: Vec<Option<Buffer>>,
    pub(super) memory: Memory,
    pub(super) frames: HashMap<FrameKey, Frame>,
    /// The last frame that ran, with the rows that it had: whose ports can be read.
    pub(super) last: Option<FrameKey>,
    pub(super) inputs: Vec<Vec<u32>>,
    profile: Option<Profile>,
    submits: u64,
}

impl Setup {
    /// The maker of stores for the states' pages, and the list of what they ask for.
    pub(crate) fn stores(&self) -> (Jobs, impl Fn(&[Len]) -> Box<dyn PageStore> + use<>) {
        let (jobs, device) = (Jobs::default(), self.device.device().clone());
        let list = jobs.clone();
        (list, move |lens: &[Len]| Box::new(DevicePages::new(device.clone(), jobs.clone(), lens)) as Box<dyn PageStore>)
    }
}

impl VulkanExecutor {
    /// An executor whose states have their pages in the stores of [`Setup::stores`]. Its smallest and largest frames are planned and run
    /// without rows, so that weights and pipelines are there before anything else wants memory.
    pub(crate) fn new(setup: Setup, states: &States, jobs: Jobs) -> Result<Self> {
        let program = &setup.program;
        let device = setup.device.device();
        let layouts = (0..program.description().states.len() as u32).map(|id| states.layout(StateId(id))).collect();
        let mut slots = vec![None; program.slots.len()];
        for slot in used_slots(program, &setup.segments) {
            let rows = if program.slots[slot].rows == Rows::Tokens { setup.tokens_max } else { setup.outs_max };
            let words = (rows as u64).saturating_mul(program.slots[slot].width as u64);
            slots[slot] = Some(device.buffer(Pool::Scratch, words.saturating_mul(4).max(4))?);
        }
        let inputs = program.inputs.iter().map(|input| {
            let rows = if input.rows == Rows::Tokens { setup.tokens_max } else { setup.outs_max };
            vec![0; rows * input.width]
        });
        let memory = Memory::new(device)?;
        let mut executor = Self {
            jobs,
            forms: form_all(program, states),
            layouts,
            classes: states.classes(),
            used: inputs::used(program, &setup.segments),
            tile: setup.tokens_max,
            stops: false,
            work_max: WORK_MAX,
            slots,
            memory,
            frames: HashMap::new(),
            last: None,
            inputs: inputs.collect(),
            profile: None,
            submits: 0,
            setup,
        };
        executor.warm_up(states)?;
        Ok(executor)
    }

    /// Plans and runs the frames of a large prompt and of one decoded row, without rows.
    fn warm_up(&mut self, states: &States) -> Result<()> {
        use coli_shaders::contract::RowClass::{Prompt, Step};
        let largest = Caps { tokens: cap(self.setup.tokens_max), outs: 1 };
        for (class, caps) in [(Prompt, largest), (Step, Caps { tokens: 1, outs: 1 })] {
            for segments in self.ranges() {
                let key = FrameKey { segments, class, caps, timed: false };
                let empty = step::Rows { step_rows: &[], tokens: &[], first: 0, outs: &[], sampling: &[] };
                self.run_frame(states, key, &empty)?;
            }
        }
        Ok(())
    }

    /// Submits so far: a test's way to see that the device ran.
    pub fn submits(&self) -> u64 {
        self.submits
    }

    /// Dispatches and barriers of the frames that were recorded, by their number of rows and segments.
    pub fn recorded(&self) -> Vec<(Range<usize>, u32, usize, usize)> {
        let frames = self.frames.iter().filter(|(_, frame)| frame.commands.is_some());
        let mut list: Vec<_> =
            frames.map(|(key, frame)| (key.segments.clone(), key.caps.tokens, frame.dispatches, frame.barriers)).collect();
        list.sort_by_key(|(segments, rows, ..)| (segments.start, segments.end, *rows));
        list
    }

    /// Whether the ports of every segment are wanted, which costs a submit for each.
    pub(crate) fn set_stops(&mut self, stops: bool) {
        self.stops = stops;
    }

    /// Changes how much a submit may have to do: a test's way to have a long prompt.
    pub(crate) fn set_work(&mut self, work: u64) {
        self.work_max = work;
    }

    /// See [`crate::CpuExecutor::set_tile`].
    pub(crate) fn set_tile(&mut self, rows: usize) {
        self.tile = rows.clamp(1, self.setup.tokens_max);
    }

    /// Begins a profile of the steps that follow, or ends it; gives the one so far.
    pub(crate) fn set_profile(&mut self, wanted: bool) -> Option<Profile> {
        std::mem::replace(&mut self.profile, wanted.then(Profile::default))
    }

    /// Checks a step, makes room for it, and fills the row inputs. Nothing has changed when it fails.
    pub(crate) fn begin<'s>(&mut self, states: &mut States, step: &'s Step) -> Result<Run<'s>> {
        let setup = &self.setup;
        inputs::begin(&setup.program, &self.used, setup.tokens_max, setup.ids.as_deref(), states, step, &mut self.inputs)
    }

    /// Runs the segments, after [`Self::begin`].
    pub(crate) fn run_segments(
        &mut self,
        states: &mut States,
        run: &mut Run<'_>,
        observe: &mut dyn FnMut(&Ports<'_>) -> Result<()>,
    ) -> Result<()> {
        let program = self.setup.program.clone();
        for range in self.ranges() {
            for segment in program.segments[range.clone()].iter().filter(|segment| matches!(segment.name, SegmentName::Draft(_))) {
                inputs::fill_next(&program, segment, run, &mut self.inputs).map_err(|error| error.within(segment.name))?;
            }
            self.run_range(&program, states, run, range, observe)?;
        }
        states.advanced();
        Ok(())
    }

    /// Segments that are submitted together: up to one over wanted rows, and up to one that needs what was sampled.
    fn ranges(&self) -> Vec<Range<usize>> {
        let all = self.setup.segments.clone();
        let segments = &self.setup.program.segments;
        let mut ranges = vec![];
        let mut start = all.start;
        for number in all.clone() {
            let ends = self.stops || segments[number].sliced || number + 1 == all.end;
            if ends || matches!(segments[number + 1].name, SegmentName::Draft(_)) {
                ranges.push(start..number + 1);
                start = number + 1;
            }
        }
        ranges
    }

    fn run_range(
        &mut self,
        program: &Program,
        states: &States,
        run: &mut Run<'_>,
        range: Range<usize>,
        observe: &mut dyn FnMut(&Ports<'_>) -> Result<()>,
    ) -> Result<()> {
        let rows = run.checked.tokens.len();
        let last = range.end - 1;
        let sliced = program.segments[last].sliced;
        let tile = self.rows_at_once(run.checked.tokens.iter().map(|at| at.pos).max().unwrap_or(0), rows);
        let whole = rows <= tile;
        // What is not submitted together with the segment over wanted rows.
        let before = if sliced && whole { range.start..range.start } else { range.start..range.end - usize::from(sliced) };
        // Rows of a port's slot are as wide as its value, so each segment has all rows before the next one may use the slot again.
        let parts: Vec<Range<usize>> = if whole { vec![before.clone()] } else { before.clone().map(|number| number..number + 1).collect() };
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            for start in (0..rows).step_by(tile) {
                let tokens = start..rows.min(start + tile);
                self.run_rows(states, run, part.clone(), tokens, 0..0)?;
            }
            self.observe(program, run, part, 0..0, observe)?;
        }
        if sliced {
            self.run_sliced(program, states, run, before.end..range.end, observe)?;
        }
        Ok(())
    }

    /// Rows that run together where one of so many stands at a position: fewer than all where they see too much for one submit.
    fn rows_at_once(&self, pos: u32, rows: usize) -> usize {
        let seen = u64::from(pos) + 1;
        if seen * rows as u64 <= self.work_max {
            return self.tile;
        }
        let fitting = usize::try_from(self.work_max / seen).unwrap_or(usize::MAX);
        let tiles = (fitting / PROMPT_ROWS * PROMPT_ROWS).max(PROMPT_ROWS.min(fitting.max(1)));
        // Less than all, so that segments are submitted one by one.
        self.tile.min(tiles).min(rows.saturating_sub(1).max(1))
    }

    /// Runs segments whose last one is over wanted rows, in slices of them.
    fn run_sliced(
        &mut self,
        program: &Program,
        states: &States,
        run: &mut Run<'_>,
        range: Range<usize>,
        observe: &mut dyn FnMut(&Ports<'_>) -> Result<()>,
    ) -> Result<()> {
        let (rows, wanted) = (run.checked.tokens.len(), run.checked.outs.len());
        let segment = &program.segments[range.end - 1];
        for start in (0..wanted.max(1)).step_by(self.setup.outs_max) {
            let slice = start..wanted.min(start.saturating_add(self.setup.outs_max));
            let outs = &run.checked.outs[slice.clone()];
            for number in segment.inputs.iter().filter(|number| program.inputs[**number].rows == Rows::Outs) {
                let rows = outs.iter().map(|at| &run.step.rows[at.step_row as usize]);
                inputs::fill(&program.inputs[*number], rows, &mut self.inputs[*number]);
            }
            let (part, tokens) = if start == 0 { (range.clone(), 0..rows) } else { (range.end - 1..range.end, 0..0) };
            self.run_rows(states, run, part.clone(), tokens, slice.clone())?;
            self.note_sampled(segment, run, slice.clone())?;
            self.observe(program, run, part, slice, observe)?;
        }
        Ok(())
    }

    fn note_sampled(&self, segment: &LinkedSegment, run: &mut Run<'_>, slice: Range<usize>) -> Result<()> {
        let Some(port) = segment.outputs.iter().find(|port| port.spec.name == ports::SAMPLED) else { return Ok(()) };
        let rows = if port.spec.rows == Rows::Tokens { run.checked.tokens.len() } else { slice.len() };
        let words = self.words(port, rows)?.unwrap_or_default();
        let width = port.spec.width as usize;
        for (at, row) in run.checked.outs[slice].iter().zip(words.chunks_exact(width)) {
            run.sampled[at.step_row as usize] = u32::try_from(row[0] as i32).ok();
        }
        Ok(())
    }

    fn observe(
        &self,
        program: &Program,
        run: &Run<'_>,
        range: Range<usize>,
        slice: Range<usize>,
        observe: &mut dyn FnMut(&Ports<'_>) -> Result<()>,
    ) -> Result<()> {
        for segment in &program.segments[range] {
            let outs = if segment.sliced { &run.checked.outs[slice.clone()] } else { &run.checked.outs[..0] };
            let ports = Ports::fetched(segment.name, &run.checked.tokens, outs, &segment.outputs, self);
            let result = observe(&ports);
            ports.observed(result)?;
        }
        Ok(())
    }

    /// Runs segments over these rows of the step and these of the wanted ones.
    fn run_rows(
        &mut self,
        states: &States,
        run: &Run<'_>,
        segments: Range<usize>,
        tokens: Range<usize>,
        slice: Range<usize>,
    ) -> Result<()> {
        let checked = &run.checked;
        let caps = Caps { tokens: cap(tokens.len()), outs: cap(slice.len()) };
        let key = FrameKey { segments, class: run.step.class, caps, timed: self.profile.is_some() };
        let rows = step::Rows {
            step_rows: &checked.tokens,
            tokens: &checked.tokens[tokens.clone()],
            first: tokens.start,
            outs: &checked.outs[slice.clone()],
            sampling: &checked.sampling[slice],
        };
        self.run_frame(states, key, &rows)
    }

    fn run_frame(&mut self, states: &States, key: FrameKey, rows: &step::Rows<'_>) -> Result<()> {
        self.jobs.run(self.setup.device.device())?;
        let pages = step::pages(states, self.classes, rows);
        self.prepare_frame(&key, pages.words.len())?;
        self.memory.put_pages(self.setup.device.device(), &pages.words)?;
        let Some(frame) = self.frames.get_mut(&key) else { return Err(Error::run("a frame went missing")) };
        let memory = &mut self.memory;
        step::fill(frame, &mut memory.host, &self.inputs, &self.setup.program, states, rows, &pages)?;
        memory.staging.write(0, bytes(&memory.host[..FAULT_WORDS]))?;
        let front = frame.words.front.clone();
        memory.staging.write(front.start as u64 * 4, bytes(&memory.host[front]))?;
        let Some(commands) = &mut frame.commands else { return Err(Error::run("a frame was not recorded")) };
        commands.submit()?;
        commands.wait()?;
        self.submits += 1;
        self.last = Some(key);
        let mut words = [0u32; FAULT_WORDS];
        memory.readback.read(0, bytes_mut(&mut words))?;
        match fault::reported(&words, &frame.ops) {
            Some(error) => Err(error),
            None => self.note_times(rows.tokens.len() as u64),
        }
    }

    /// Plans and records a frame that has not run yet, and makes room for it.
    fn prepare_frame(&mut self, key: &FrameKey, pages: usize) -> Result<()> {
        if self.memory.grow_pages(pages) {
            self.frames.clear();
        }
        if self.frames.get(key).is_some_and(|frame| frame.commands.is_some()) {
            return Ok(());
        }
        let setup = &self.setup;
        let planner = Planner {
            program: &setup.program,
            shape: setup.device.shape(),
            weights: &setup.weights,
            states: &self.forms,
            context: setup.context,
            fast: setup.fast,
        };
        let mut frame = Frame::plan(&planner, key, self.memory.pages, self.classes, self.setup.outs_max)?;
        if self.memory.make_room(self.setup.device.device(), &frame)? {
            self.frames.clear();
        }
        let memory = &self.memory;
        let buffers = Buffers {
            device: &self.setup.device,
            weights: &self.setup.weights,
            layouts: &self.layouts,
            slots: &self.slots,
            step: &memory.step,
            staging: &memory.staging,
            scratch: &memory.scratch,
            readback: &memory.readback,
        };
        frame.record(&self.setup.program, key, &buffers)?;
        self.frames.insert(key.clone(), frame);
        Ok(())
    }

    /// Adds the times of the frame that has just run over so many rows to the profile.
    fn note_times(&mut self, rows: u64) -> Result<()> {
        let (Some(profile), Some(key)) = (&mut self.profile, &self.last) else { return Ok(()) };
        let Some(frame) = self.frames.get(key) else { return Ok(()) };
        let Some(stamps) = frame.commands.as_ref().map(Commands::stamps).transpose()?.flatten() else { return Ok(()) };
        for (op, pair) in frame.ops.iter().zip(stamps.windows(2)) {
            // Rows that take the same expert share its bytes; how many do is the device's knowledge.
            let experts = op.experts.map_or(0, |(count, taken, bytes)| count.min(rows * taken) * bytes);
            profile.add(&op.id, Duration::from_nanos((pair[1] - pair[0]).max(0.0) as u64), op.weight_bytes + experts);
        }
        if profile.bandwidth.is_none() {
            profile.bandwidth = super::bandwidth::measured(self.setup.device.device())?;
        }
        Ok(())
    }

    /// Runs a step with ports from outside, in the program's order, as [`crate::CpuExecutor::run_given`] does.
    pub fn run_given(
        &mut self,
        states: &mut States,
        step: &Step,
        given: &[Data],
        observe: &mut dyn FnMut(&Ports<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut run = self.begin(states, step)?;
        let result = self.give(given).and_then(|()| self.run_segments(states, &mut run, observe)).and_then(|()| states.commit());
        if result.is_err() {
            states.abandon();
        }
        result
    }

    fn give(&mut self, given: &[Data]) -> Result<()> {
        let program = self.setup.program.clone();
        for (port, data) in program.given.iter().zip(given) {
            let words: Vec<u32> = match data {
                Data::F32(numbers) => numbers.iter().map(|number| number.to_bits()).collect(),
                Data::I32(ids) => ids.iter().map(|id| *id as u32).collect(),
            };
            self.take_port(port, &words)?;
        }
        Ok(())
    }
}

/// The smallest cap for so many rows.
fn cap(rows: usize) -> u32 {
    let cap =
        if rows <= STEP_ROWS { rows.max(1).next_power_of_two() } else { PROMPT_ROWS * rows.div_ceil(PROMPT_ROWS).next_power_of_two() };
    cap as u32
}
