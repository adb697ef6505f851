//! Runs an op's cases: those of the library in tests, and those that a plugin ships with an op of its own before the op is used.
//!
//! A plugin's case is believed no more than its recordings: nothing here panics on what a case says.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use coli_base::crew::Crew;
use coli_base::{Error, Result};
use coli_plugin_api::codec;
use coli_plugin_api::describe::SegmentName;
use coli_plugin_api::program::{Direction, Domain, Ty};
use coli_shaders::contract::{Case, Data, RowClass, WeightStore};
use coli_shaders::fast::Level;

use crate::cpu::Ports;
use crate::program::{OpTable, PortSpec, Program, Rows};
use crate::relay::{is_even, takes_halves};
use crate::state::PAGE_POSITIONS;
use crate::vulkan::{DeviceWeights, Setup, VulkanDevice, VulkanExecutor};
use crate::{CpuExecutor, Row, States, Step};

/// Rows of a case, and positions of its context. A case is tiny.
const SIZE_MAX: usize = 4096;

/// Runs a case in one step and row by row. An error is what is wrong: a number that is off, or bits that depend on what a row is computed
/// with.
pub fn check(case: &Case, ops: &OpTable) -> Result<()> {
    let len = case.rows.len();
    let whole = run(case, ops, std::slice::from_ref(&(0..len)))?;
    for expected in &case.expected {
        compare(&whole[&expected.port], &expected.data, expected.tolerance)
            .map_err(|fault| Error::refused(format!("port `{}` {fault} ({})", expected.port, case.from)))?;
    }
    let cuts: Vec<Range<usize>> = (0..len).map(|row| row..row + 1).collect();
    let alone = run(case, ops, &cuts)?;
    match whole.iter().find(|(port, data)| !same_bits(data, &alone[*port])) {
        None => Ok(()),
        Some((port, _)) => Err(Error::refused(format!("port `{port}` has other bits when its rows are computed one by one"))),
    }
}

pub(crate) fn compare(have: &Data, want: &Data, tolerance: f32) -> std::result::Result<(), String> {
    match (have, want) {
        (Data::F32(have), Data::F32(want)) => {
            let error = relative_error(have, want);
            // Written so that a tolerance that is not a number allows nothing.
            if error <= tolerance { Ok(()) } else { Err(format!("is off by {error:e} of the largest number, {tolerance:e} is allowed")) }
        }
        (have, want) if have == want => Ok(()),
        _ => Err("gives other ids".into()),
    }
}

/// The largest difference as a share of the reference's largest magnitude. Not a number or another length is infinitely far.
pub fn relative_error(have: &[f32], want: &[f32]) -> f32 {
    if have.len() != want.len() {
        return f32::INFINITY;
    }
    let largest = want.iter().fold(0.0f32, |largest, number| largest.max(number.abs()));
    let mut error = 0.0f32;
    for (have, want) in have.iter().zip(want) {
        let difference = (have - want).abs();
        if difference.is_nan() {
            return f32::INFINITY;
        }
        error = error.max(difference);
    }
    if largest > 0.0 { error / largest } else { error }
}

pub(crate) fn same_bits(a: &Data, b: &Data) -> bool {
    match (a, b) {
        (Data::F32(a), Data::F32(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits()),
        (a, b) => a == b,
    }
}

/// How a case is run.
#[derive(Debug, Clone, Copy, Default)]
pub struct How {
    /// The instructions of fast mode; `None` in exact mode.
    pub fast: Option<Level>,
    /// What its rows are for.
    pub class: RowClass,
    /// Threads; 0 is one.
    pub threads: usize,
    /// Whether rows that may round are stored as binary16.
    pub halves: bool,
}

/// Runs the case's rows in steps of these ranges; gives the numbers of each expected port, row after row.
pub fn run(case: &Case, ops: &OpTable, cuts: &[Range<usize>]) -> Result<HashMap<String, Data>> {
    run_as(case, ops, cuts, How::default())
}

/// The same in another mode.
pub fn run_as(case: &Case, ops: &OpTable, cuts: &[Range<usize>], how: How) -> Result<HashMap<String, Data>> {
    let bench = Bench::new(case, ops)?;
    let half = |id| how.halves && takes_halves(&bench.program, id);
    let mut states = States::of(&case.description, |_| true, half, PAGE_POSITIONS, case.description.context_max, None);
    let rows_max = case.rows.len();
    let executor = CpuExecutor::new(bench.program.clone(), Arc::new(case.weights.clone()), rows_max, rows_max)?;
    let mut executor = executor.with_crew(Arc::new(Crew::new(how.threads)?), how.fast);
    bench.run(case, cuts, how.class, &mut states, |states, step, given, observe| executor.run_given(states, step, given, observe))
}

/// A device to run a case on, and how.
pub struct OnDevice<'a> {
    /// The device.
    pub device: &'a Arc<VulkanDevice>,
    /// Whether fast mode's kernels may be taken.
    pub fast: bool,
    /// What its rows are for.
    pub class: RowClass,
    /// Whether rows that may round are stored as binary16.
    pub halves: bool,
}

/// The same on a device, whether or not some op of it has to be the CPU's: that is an error.
pub fn run_on(case: &Case, ops: &OpTable, cuts: &[Range<usize>], on: &OnDevice<'_>) -> Result<HashMap<String, Data>> {
    let bench = Bench::new(case, ops)?;
    let weights: Arc<dyn WeightStore> = Arc::new(case.weights.clone());
    let setup = Setup {
        program: bench.program.clone(),
        device: on.device.clone(),
        weights: Arc::new(DeviceWeights::new(on.device.device().clone(), weights, &case.description)),
        ids: None,
        segments: 0..1,
        tokens_max: case.rows.len(),
        outs_max: case.rows.len(),
        fast: on.fast,
        context: case.description.context_max,
    };
    let (jobs, make) = setup.stores();
    let half = |id| on.halves && takes_halves(&bench.program, id) && is_even(&bench.program, id);
    let mut states = States::of(&case.description, |_| true, half, PAGE_POSITIONS, case.description.context_max, Some(&make));
    let mut executor = VulkanExecutor::new(setup, &states, jobs)?;
    bench.run(case, cuts, on.class, &mut states, |states, step, given, observe| executor.run_given(states, step, given, observe))
}

/// A case that is ready to run.
struct Bench {
    program: Arc<Program>,
    given: Vec<PortSpec>,
}

type Observe<'o> = &'o mut dyn FnMut(&Ports<'_>) -> Result<()>;

impl Bench {
    fn new(case: &Case, ops: &OpTable) -> Result<Self> {
        check_sizes(case).map_err(Error::refused)?;
        let given = given(case).map_err(Error::refused)?;
        let recordings = [(SegmentName::Layer(0), codec::encode(&case.recording).map_err(Error::refused)?)];
        let program = Arc::new(Program::build(&case.description, &recordings, ops, &given)?);
        Ok(Self { program, given })
    }

    fn run(
        &self,
        case: &Case,
        cuts: &[Range<usize>],
        class: RowClass,
        states: &mut States,
        mut run: impl FnMut(&mut States, &Step, &[Data], Observe<'_>) -> Result<()>,
    ) -> Result<HashMap<String, Data>> {
        let convs = case.rows.iter().map(|row| row.conv + 1).max().unwrap_or(0);
        // A conversation starts where its first row stands.
        let first = |conv: u32| case.rows.iter().find(|row| row.conv == conv).map_or(0, |row| row.pos);
        let convs: Vec<_> = (0..convs).map(|conv| states.open_at(first(conv))).collect();
        let mut results: HashMap<String, Data> = HashMap::new();
        for cut in cuts {
            let rows = case.rows[cut.clone()].iter().enumerate().map(|(index, at)| {
                let wanted = case.outs.contains(&((cut.start + index) as u32));
                Row::text(convs[at.conv as usize], at.pos, case.tokens[cut.start + index] as u32, wanted.then_some(case.sampling))
            });
            let step = Step { rows: rows.collect(), class };
            let of_cut = |(spec, (_, data)): (&PortSpec, &(String, Data))| slice(data, spec.width as usize, cut);
            let inputs: Vec<Data> = self.given.iter().zip(&case.inputs).map(of_cut).collect();
            run(states, &step, &inputs, &mut |ports| collect(case, ports, &mut results))?;
        }
        Ok(results)
    }
}

fn check_sizes(case: &Case) -> std::result::Result<(), String> {
    let rows = case.rows.len();
    // A conversation has pages from its first row on, so the context itself costs nothing.
    if rows == 0 || rows > SIZE_MAX {
        return Err(format!("{rows} rows, expected 1 to {SIZE_MAX}"));
    }
    if case.tokens.len() != rows {
        return Err(format!("{rows} rows and {} tokens", case.tokens.len()));
    }
    if case.expected.is_empty() {
        return Err("it expects nothing".into());
    }
    let mut names = HashSet::new();
    if let Some((name, _)) = case.inputs.iter().find(|(name, _)| !names.insert(name)) {
        return Err(format!("port in `{name}` is given twice"));
    }
    match case.rows.iter().find(|row| row.conv as usize >= rows || row.pos >= case.description.context_max) {
        Some(row) => Err(format!("position {} of conversation {} in {rows} rows", row.pos, row.conv)),
        None => Ok(()),
    }
}

/// The ports that the case gives, in the order of its inputs.
fn given(case: &Case) -> std::result::Result<Vec<PortSpec>, String> {
    let spec = |(name, data): &(String, Data)| {
        let port = case.recording.ports.iter().find(|port| port.direction == Direction::In && port.name == *name);
        let value = port.and_then(|port| case.recording.values.get(port.value.0 as usize));
        let value = value.ok_or_else(|| format!("its recording has no port in `{name}`"))?;
        if case.recording.domains.get(usize::from(value.domain.0)) != Some(&Domain::Tokens) {
            return Err(format!("port in `{name}`: rows other than the step's are not implemented"));
        }
        let (ty, len) = match data {
            Data::F32(numbers) => (Ty::F32, numbers.len()),
            Data::I32(ids) => (Ty::I32, ids.len()),
        };
        if ty != value.ty || (value.width as usize).checked_mul(case.rows.len()) != Some(len) {
            return Err(format!("port in `{name}`: {len} {ty:?} for {} rows of {} {:?}", case.rows.len(), value.width, value.ty));
        }
        Ok(PortSpec { name: name.clone(), rows: Rows::Tokens, ty, width: value.width })
    };
    case.inputs.iter().map(spec).collect()
}

fn slice(data: &Data, width: usize, rows: &Range<usize>) -> Data {
    let range = rows.start * width..rows.end * width;
    match data {
        Data::F32(numbers) => Data::F32(numbers[range].to_vec()),
        Data::I32(ids) => Data::I32(ids[range].to_vec()),
    }
}

/// Adds the rows of the expected ports to the results.
fn collect(case: &Case, ports: &Ports<'_>, results: &mut HashMap<String, Data>) -> Result<()> {
    for expected in &case.expected {
        let found = ports.get(&expected.port);
        let (columns, rows) = found.ok_or_else(|| Error::refused(format!("its recording has no port out `{}`", expected.port)))?;
        let empty = || if matches!(expected.data, Data::F32(_)) { Data::F32(vec![]) } else { Data::I32(vec![]) };
        match results.entry(expected.port.clone()).or_insert_with(empty) {
            Data::F32(all) => (0..rows).for_each(|row| all.extend_from_slice(columns.row(row))),
            Data::I32(all) => (0..rows).for_each(|row| all.extend_from_slice(columns.ints(row))),
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "case_tests.rs"]
mod tests;
