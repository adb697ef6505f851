//! Several executors, each with some of the segments: a program cut into stages.
//!
//! A stage has its own executor and its own states. Before it runs, it is given what it needs of the earlier ones, and nothing else: the
//! ports that its segments read, and the rows that shared states got in this step. Both follow from the recording ([`crossing`]). The
//! sampled tokens are part of the step and known to all stages.

use std::ops::Range;
use std::sync::Arc;

use coli_base::crew::Crew;
use coli_base::units::Bytes;
use coli_base::{Error, Result};
use coli_plugin_api::describe::StateKind;
use coli_plugin_api::program::StateId;
use coli_shaders::contract::{StateAccess as _, Team, WeightStore};
use coli_shaders::fast::Level;

use crate::cpu::{CpuExecutor, Ports, Run, Threads};
use crate::executor::Executor;
use crate::inputs::IdSource;
use crate::profile::Profile;
use crate::program::{Program, ReadPort};
use crate::state::{ConvId, OpStates, Snapshot, States};
use crate::step::Step;
use crate::vulkan::{DeviceWeights, Setup, VulkanDevice, VulkanExecutor};

/// How a program is cut, and how large its steps may be.
#[derive(Clone)]
pub struct Cutting {
    /// The first segment of each stage but the first one, ascending.
    pub cuts: Vec<usize>,
    /// Rows of a step, at most.
    pub tokens_max: usize,
    /// Wanted rows that run together.
    pub outs_max: usize,
    /// Positions of a page.
    pub page_positions: u32,
    /// Positions of a conversation, at most.
    pub context: u32,
    /// The plugin's `ids` function, where the program has inputs of that source.
    pub ids: Option<Arc<dyn IdSource>>,
    /// Threads.
    pub crew: Arc<Crew>,
    /// The instructions of fast mode; `None` in exact mode.
    pub fast: Option<Level>,
    /// The device that runs stages, where one does.
    pub device: Option<StageDevice>,
}

/// A device, and which stages it runs.
#[derive(Clone)]
pub struct StageDevice {
    /// The device.
    pub device: Arc<VulkanDevice>,
    /// The weights as they lie on it.
    pub weights: Arc<DeviceWeights>,
    /// By stage; stages beyond the list are the device's.
    pub stages: Vec<bool>,
}

impl Cutting {
    fn device_of(&self, stage: usize) -> Option<&StageDevice> {
        self.device.as_ref().filter(|device| device.stages.get(stage).copied().unwrap_or(true))
    }
}

/// Cuts a program where a device refuses a segment and accepts its neighbour, besides the cuts that are wanted anyway: all cuts, and which
/// stages the device runs.
pub fn cuts_for_device(refused: &[bool], wanted: &[usize]) -> (Vec<usize>, Vec<bool>) {
    let border = |number: &usize| refused[*number - 1] != refused[*number];
    let cuts: Vec<usize> = (1..refused.len()).filter(|number| wanted.contains(number) || border(number)).collect();
    let stages = std::iter::once(0).chain(cuts.iter().copied()).map(|start| !refused.get(start).copied().unwrap_or(false)).collect();
    (cuts, stages)
}

/// Whether fast mode may store a state's rows as binary16: the description lets every part of a row round, and every op that uses the
/// state takes rows in either form.
pub(crate) fn takes_halves(program: &Program, id: StateId) -> bool {
    let StateKind::Rows { parts, .. } = &program.description().states[id.0 as usize].kind else { return false };
    let mut ops = program.segments.iter().flat_map(|segment| &segment.ops);
    parts.iter().all(|part| part.may_round) && ops.all(|op| !op.states.contains(&id) || coli_shaders::ops::takes_halves(&op.id))
}

/// What a stage is given before it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Crossing {
    /// Names of ports, each with the stage that gave it.
    pub ports: Vec<(String, usize)>,
    /// Shared states, each with the stage that writes it.
    pub states: Vec<(StateId, usize)>,
}

struct Stage {
    segments: Range<usize>,
    executor: Executor,
    states: States,
    crossing: Crossing,
    reads: Vec<ReadPort>,
}

/// Runs steps through all stages, in order.
pub struct Relay {
    program: Arc<Program>,
    stages: Vec<Stage>,
    crew: Arc<Crew>,
    poisons: bool,
}

/// Conversations of all stages as they were.
#[derive(Debug)]
pub struct RelaySnapshot(Vec<Snapshot>);

impl Relay {
    /// Makes the stages. An error where a cut is not between two segments, or memory is lacking.
    pub fn new(program: Arc<Program>, weights: &Arc<dyn WeightStore>, cutting: &Cutting) -> Result<Self> {
        let ranges = ranges(&cutting.cuts, program.segments.len())?;
        let stages = ranges.iter().enumerate().map(|(number, segments)| {
            let crossing = crossing(&program, &ranges, number);
            let held = |id: StateId| holds(&program, segments, id) || crossing.states.iter().any(|(known, _)| *known == id);
            let (executor, states) = match cutting.device_of(number) {
                None => cpu_stage(&program, weights, cutting, segments, held)?,
                Some(device) => device_stage(&program, device, cutting, segments, held)?,
            };
            let reads = program.segments[segments.clone()].iter().flat_map(|segment| segment.reads.iter().cloned()).collect();
            Ok(Stage { segments: segments.clone(), executor, states, crossing, reads })
        });
        let stages = stages.collect::<Result<_>>()?;
        Ok(Self { program, stages, crew: cutting.crew.clone(), poisons: false })
    }

    /// Has the ports of every segment ready for an observer, at the cost of a device's submit for each; otherwise those of inner segments
    /// may be gone when it is called.
    pub fn set_stops(&mut self, stops: bool) {
        for stage in &mut self.stages {
            if let Executor::Vulkan(vulkan) = &mut stage.executor {
                vulkan.set_stops(stops);
            }
        }
    }

    /// Changes how much a device's submit may have to do, in rows times positions: a test's way to have a long prompt.
    pub fn set_work(&mut self, work: u64) {
        for stage in &mut self.stages {
            if let Executor::Vulkan(vulkan) = &mut stage.executor {
                vulkan.set_work(work);
            }
        }
    }

    /// The executors on a device, by stage.
    pub fn on_device(&self) -> impl Iterator<Item = Option<&VulkanExecutor>> {
        self.stages.iter().map(|stage| stage.executor.vulkan())
    }

    /// Memory that a conversation of `positions` takes where one stage has all segments.
    pub fn conversation_bytes(program: &Program, fast: bool, page_positions: u32, positions: u32) -> Bytes {
        let all = 0..program.segments.len();
        let half = |id: StateId| fast && takes_halves(program, id);
        let holds = |id| holds(program, &all, id);
        States::of(program.description(), holds, half, page_positions, positions, None).conversation_bytes(positions)
    }

    /// How many segments there are.
    pub fn segments(&self) -> usize {
        self.program.segments.len()
    }

    /// What each stage is given.
    pub fn crossings(&self) -> impl Iterator<Item = &Crossing> {
        self.stages.iter().map(|stage| &stage.crossing)
    }

    /// Changes what a stage is given: a test's way to show that all of it is needed.
    pub fn crossing_mut(&mut self, stage: usize) -> &mut Crossing {
        &mut self.stages[stage].crossing
    }

    /// Fills all scratch memory with NaN before each step: a test's way to show that nothing else is needed.
    pub fn poison_scratch(&mut self) {
        self.poisons = true;
    }

    /// See [`CpuExecutor::set_tile`].
    pub fn set_tile(&mut self, rows: usize) {
        self.stages.iter_mut().for_each(|stage| stage.executor.set_tile(rows));
    }

    /// Begins a profile of the steps that follow, or ends it; gives the one so far.
    pub fn set_profile(&mut self, wanted: bool) -> Option<Profile> {
        let parts = self.stages.iter_mut().filter_map(|stage| stage.executor.set_profile(wanted));
        parts.reduce(|mut all, part| {
            all.join(&part);
            all
        })
    }

    /// A new, empty conversation.
    pub fn open(&mut self) -> ConvId {
        self.everywhere(States::open)
    }

    /// Forgets a conversation.
    pub fn close(&mut self, conv: ConvId) {
        self.stages.iter_mut().for_each(|stage| stage.states.close(conv));
    }

    /// Positions that a conversation has, `None` where there is no such conversation.
    pub fn len(&self, conv: ConvId) -> Option<u32> {
        self.stages.first()?.states.len(conv)
    }

    /// Forgets the positions from `len` on. An error where a state's rules do not allow it; then nothing has changed.
    pub fn rewind(&mut self, conv: ConvId, len: u32) -> Result<()> {
        self.stages.iter().try_for_each(|stage| stage.states.check_rewind(conv, len))?;
        self.stages.iter_mut().try_for_each(|stage| stage.states.rewind(conv, len))
    }

    /// A conversation as it is now.
    pub fn snapshot(&self, conv: ConvId) -> Result<RelaySnapshot> {
        Ok(RelaySnapshot(self.stages.iter().map(|stage| stage.states.snapshot(conv)).collect::<Result<_>>()?))
    }

    /// A new conversation that continues from a snapshot of this relay.
    pub fn restore(&mut self, snapshot: &RelaySnapshot) -> ConvId {
        let mut parts = snapshot.0.iter();
        self.everywhere(|states| states.restore(parts.next().expect("a snapshot of the same stages")))
    }

    /// Slots are given out alike on every stage, since they see the same calls.
    fn everywhere(&mut self, mut call: impl FnMut(&mut States) -> ConvId) -> ConvId {
        let mut ids = self.stages.iter_mut().map(|stage| call(&mut stage.states));
        let first = ids.next().expect("a relay has a stage");
        assert!(ids.all(|id| id == first), "a conversation has one slot on every stage");
        first
    }

    /// Runs a step. `observe` sees the ports of every segment. When it fails, every conversation is as it was.
    pub fn run(&mut self, step: &Step, mut observe: impl FnMut(&Ports<'_>) -> Result<()>) -> Result<()> {
        let crew = self.crew.clone();
        let result = crew.lead(|region| self.run_stages(step, &Threads(region), &mut observe));
        let result = result.and_then(|()| self.stages.iter().try_for_each(|stage| stage.states.check_commit()));
        match result {
            Ok(()) => self.stages.iter_mut().try_for_each(|stage| stage.states.commit()),
            Err(error) => {
                self.stages.iter_mut().for_each(|stage| stage.states.abandon());
                Err(error)
            }
        }
    }

    fn run_stages(&mut self, step: &Step, team: &dyn Team, observe: &mut dyn FnMut(&Ports<'_>) -> Result<()>) -> Result<()> {
        if self.poisons {
            self.stages.iter_mut().try_for_each(|stage| stage.executor.poison())?;
        }
        let mut sampled = vec![None; step.rows.len()];
        for number in 0..self.stages.len() {
            let (before, rest) = self.stages.split_at_mut(number);
            let Some(stage) = rest.first_mut() else { break };
            let mut run = stage.executor.begin(&mut stage.states, step)?;
            run.sampled = sampled;
            stage.take(before, &run, &self.program)?;
            stage.executor.run_segments(&mut stage.states, &mut run, team, observe)?;
            sampled = run.sampled;
        }
        Ok(())
    }
}

impl Stage {
    /// Takes over what crosses.
    fn take(&mut self, before: &[Stage], run: &Run<'_>, program: &Program) -> Result<()> {
        let rows = run.step.rows.len();
        for read in &self.reads {
            let name = &read.port.spec.name;
            let Some((_, from)) = self.crossing.ports.iter().find(|(known, from)| {
                known == name && before.get(*from).is_some_and(|stage| read.from.is_some_and(|from| stage.segments.contains(&from)))
            }) else {
                continue;
            };
            self.executor.take_port(&read.port, &before[*from].executor.port_words(&read.port, rows)?)?;
        }
        for (id, from) in &self.crossing.states {
            let StateKind::Rows { stride, .. } = program.description().states[id.0 as usize].kind else { continue };
            let ids = [*id];
            for at in run.checked.tokens.iter().filter(|at| at.pos % stride == stride - 1) {
                let index = at.pos / stride;
                let missing = || Error::run(format!("state {} has no row {index} to hand over", id.0));
                let row = before[*from].states.step_row(*id, at.conv, index).ok_or_else(missing)??;
                let mut to = OpStates { states: &mut self.states, ids: &ids };
                if !to.put(0, at.conv, index, 0, &row) {
                    return Err(missing());
                }
            }
        }
        Ok(())
    }
}

fn cpu_stage(
    program: &Arc<Program>,
    weights: &Arc<dyn WeightStore>,
    cutting: &Cutting,
    segments: &Range<usize>,
    held: impl Fn(StateId) -> bool,
) -> Result<(Executor, States)> {
    let executor = CpuExecutor::new(program.clone(), weights.clone(), cutting.tokens_max, cutting.outs_max)?;
    let executor = executor.with_ids(cutting.ids.clone()).with_segments(segments.clone());
    let executor = executor.with_crew(cutting.crew.clone(), cutting.fast);
    let half = |id: StateId| cutting.fast.is_some() && takes_halves(program, id);
    let states = States::of(program.description(), held, half, cutting.page_positions, cutting.context, None);
    Ok((Executor::Cpu(Box::new(executor)), states))
}

fn device_stage(
    program: &Arc<Program>,
    on: &StageDevice,
    cutting: &Cutting,
    segments: &Range<usize>,
    held: impl Fn(StateId) -> bool,
) -> Result<(Executor, States)> {
    let setup = Setup {
        program: program.clone(),
        device: on.device.clone(),
        weights: on.weights.clone(),
        ids: cutting.ids.clone(),
        segments: segments.clone(),
        tokens_max: cutting.tokens_max,
        outs_max: cutting.outs_max,
        fast: cutting.fast.is_some(),
        context: cutting.context,
    };
    let (jobs, make) = setup.stores();
    // Kernels write two halves at a time.
    let half = |id: StateId| cutting.fast.is_some() && takes_halves(program, id) && is_even(program, id);
    let states = States::of(program.description(), held, half, cutting.page_positions, cutting.context, Some(&make));
    let executor = VulkanExecutor::new(setup, &states, jobs)?;
    Ok((Executor::Vulkan(Box::new(executor)), states))
}

/// Whether all parts of a state's row have an even width together, as binary16 on a device needs it.
pub(crate) fn is_even(program: &Program, id: StateId) -> bool {
    match &program.description().states[id.0 as usize].kind {
        StateKind::Rows { parts, .. } => parts.iter().map(|part| part.width).sum::<u32>() % 2 == 0,
        StateKind::Accumulator { .. } => false,
    }
}

fn ranges(cuts: &[usize], segments: usize) -> Result<Vec<Range<usize>>> {
    let mut ends = cuts.to_vec();
    ends.push(segments);
    let mut start = 0;
    let mut ranges = vec![];
    for end in ends {
        if end <= start || end > segments {
            return Err(Error::run(format!("cuts before segments {cuts:?} of {segments}")));
        }
        ranges.push(start..end);
        start = end;
    }
    Ok(ranges)
}

/// Whether a state belongs to one of these segments.
fn holds(program: &Program, segments: &Range<usize>, id: StateId) -> bool {
    let owner = program.description().states[id.0 as usize].owner;
    program.segments[segments.clone()].iter().any(|segment| segment.name == owner)
}

/// What a stage needs of the earlier ones.
fn crossing(program: &Program, ranges: &[Range<usize>], number: usize) -> Crossing {
    let stage_of = |segment: usize| ranges.iter().position(|range| range.contains(&segment));
    let mut crossing = Crossing::default();
    for segment in &program.segments[ranges[number].clone()] {
        for read in &segment.reads {
            let from = read.from.and_then(stage_of).filter(|from| *from < number);
            let port = from.map(|from| (read.port.spec.name.clone(), from));
            crossing.ports.extend(port.filter(|port| !crossing.ports.contains(port)));
        }
        for id in segment.ops.iter().flat_map(|op| &op.states) {
            let from = ranges[..number].iter().position(|range| holds(program, range, *id));
            let state = from.map(|from| (*id, from));
            crossing.states.extend(state.filter(|state| !crossing.states.contains(state)));
        }
    }
    crossing
}

#[cfg(test)]
#[path = "relay_tests.rs"]
mod tests;
