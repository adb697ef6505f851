//! Rules of one segment: its bytes, tables, single assignment, states, and every op's own.

use std::collections::HashSet;

use coli_plugin_api::codec;
use coli_plugin_api::describe::{Description, SegmentName, StateKind, WeightRef};
use coli_plugin_api::program::{
    Access, Builtin, Direction, Domain, DomainId, Input, InputSource, OpRecord, OperandRef, Recording, Source, StateId, Ty, ValueId,
    WeightId,
};
use coli_shaders::contract::{Kernel, OpFacts, ValueFacts};

use super::description::{WIDTH_MAX, shown};
use super::{OpTable, Rows};

/// Table rows that an `ids` input may have for one row.
const IDS_MAX: u32 = 1 << 12;

/// A segment whose own rules hold.
pub(super) struct Checked {
    pub name: SegmentName,
    pub recording: Recording,
    /// The rows of each domain.
    pub domains: Vec<Rows>,
    /// A kernel and the rows that it works on, for each op.
    pub ops: Vec<(Kernel, Rows)>,
}

/// Checks a segment; `stored` are the states that earlier segments have written, to which it adds its own.
pub(super) fn check(
    name: SegmentName,
    bytes: &[u8],
    description: &Description,
    ops: &OpTable,
    stored: &mut HashSet<StateId>,
) -> Result<Checked, String> {
    let recording = codec::decode(bytes)?;
    let domains = domains(&recording)?;
    tables(name, &recording, &domains)?;
    let mut checker = Checker { name, recording: &recording, description, written: HashSet::new(), stored };
    checker.ports_in()?;
    let mut kernels = Vec::with_capacity(recording.ops.len());
    for (index, op) in recording.ops.iter().enumerate() {
        let kernel = checker.op(op, ops).map_err(|fault| format!("op {index} {}: {fault}", op.name))?;
        kernels.push(kernel);
    }
    checker.ports_out()?;
    Ok(Checked { name, domains, ops: kernels, recording })
}

fn domains(recording: &Recording) -> Result<Vec<Rows>, String> {
    let mut seen = Vec::new();
    for (index, domain) in recording.domains.iter().enumerate() {
        let rows = match domain {
            Domain::Tokens => Rows::Tokens,
            Domain::Outs => Rows::Outs,
            other => return Err(format!("domain {index}: {other:?} not implemented")),
        };
        if seen.contains(&rows) {
            return Err(format!("domain {index}: {domain:?} stands twice"));
        }
        seen.push(rows);
    }
    Ok(seen)
}

/// Indices, widths and names of the input and value tables.
fn tables(segment: SegmentName, recording: &Recording, domains: &[Rows]) -> Result<(), String> {
    let domain = |id: DomainId| {
        let rows = domains.get(usize::from(id.0)).copied();
        rows.ok_or_else(|| format!("domain {} of {}", id.0, domains.len()))
    };
    let width =
        |width: u32| if (1..=WIDTH_MAX).contains(&width) { Ok(()) } else { Err(format!("width {width}, expected 1 to {WIDTH_MAX}")) };
    let mut names = HashSet::new();
    for (index, input) in recording.inputs.iter().enumerate() {
        let check = || row_input(segment, input, domain(input.domain)?);
        check().map_err(|fault: String| format!("input {index} `{}`: {fault}", input.name))?;
        if !names.insert(&input.name) {
            return Err(format!("input {index}: the name `{}` stands twice", input.name));
        }
    }
    for (index, value) in recording.values.iter().enumerate() {
        domain(value.domain).and_then(|_| width(value.width)).map_err(|fault| format!("value {index}: {fault}"))?;
    }
    Ok(())
}

/// Rules of a row input over these rows.
fn row_input(segment: SegmentName, input: &Input, rows: Rows) -> Result<(), String> {
    let widths = match input.source {
        InputSource::Host => return Err("rows that the host gives are not implemented".into()),
        InputSource::Builtin(Builtin::NextToken) if !matches!(segment, SegmentName::Draft(_)) || rows != Rows::Tokens => {
            return Err("the next token is known to draft segments only, for the step's rows".into());
        }
        InputSource::Builtin(Builtin::RotaryPosition) => 1..=4,
        InputSource::Builtin(_) => 1..=1,
        InputSource::Ids { .. } if rows != Rows::Tokens => return Err("ids are known for the step's rows only".into()),
        InputSource::Ids { window: 0 } => return Err("a window of no tokens".into()),
        InputSource::Ids { .. } => 1..=IDS_MAX,
    };
    if input.ty != Ty::I32 || !widths.contains(&input.width) {
        return Err(format!("{} {:?} a row, expected {widths:?} I32", input.width, input.ty));
    }
    Ok(())
}

struct Checker<'a> {
    name: SegmentName,
    recording: &'a Recording,
    description: &'a Description,
    written: HashSet<ValueId>,
    /// States that have the step's rows by now.
    stored: &'a mut HashSet<StateId>,
}

impl<'a> Checker<'a> {
    fn ports_in(&mut self) -> Result<(), String> {
        for port in self.recording.ports.iter().filter(|port| port.direction == Direction::In) {
            self.write(port.value).map_err(|fault| format!("port in `{}`: {fault}", port.name))?;
        }
        Ok(())
    }

    fn ports_out(&self) -> Result<(), String> {
        let mut names = HashSet::new();
        for port in &self.recording.ports {
            if !names.insert((port.direction as u8, &port.name)) {
                return Err(format!("port `{}` stands twice", port.name));
            }
            if !self.written.contains(&port.value) {
                return Err(format!("port out `{}`: value {} is never written", port.name, port.value.0));
            }
        }
        match (0..self.recording.values.len() as u32).find(|id| !self.written.contains(&ValueId(*id))) {
            Some(id) => Err(format!("value {id} is never written")),
            None => Ok(()),
        }
    }

    /// Notes the one writing of a value.
    fn write(&mut self, id: ValueId) -> Result<(), String> {
        if id.0 as usize >= self.recording.values.len() {
            return Err(format!("value {} of {}", id.0, self.recording.values.len()));
        }
        if self.written.insert(id) { Ok(()) } else { Err(format!("value {} is written twice", id.0)) }
    }

    fn op(&mut self, op: &OpRecord, table: &OpTable) -> Result<(Kernel, Rows), String> {
        let prepare = table.get(&op.name).ok_or("this host has no such op")?;
        let ins =
            op.ins.iter().enumerate().map(|(index, operand)| self.operand(operand).map_err(|fault| format!("input {index}: {fault}")));
        let ins = ins.collect::<Result<Vec<_>, String>>()?;
        for (index, id) in op.outs.iter().enumerate() {
            self.write(*id).map_err(|fault| format!("output {index}: {fault}"))?;
        }
        let outs: Vec<ValueFacts<'_>> = op.outs.iter().map(|id| self.value(*id)).collect();
        let weights = op.weights.iter().map(|id| self.weight(*id)).collect::<Result<Vec<_>, String>>()?;
        let states = op.states.iter().map(|(id, access)| self.state(*id, *access)).collect::<Result<Vec<_>, String>>()?;
        let groups = op.groups.iter().map(|id| {
            let group = self.description.groups.get(id.0 as usize);
            group.ok_or_else(|| format!("group {} of {}", id.0, self.description.groups.len()))
        });
        let groups = groups.collect::<Result<Vec<_>, String>>()?;
        let facts = OpFacts { params: &op.params, ins: &ins, outs: &outs, weights: &weights, states: &states, groups: &groups };
        let kernel = prepare(&facts)?;
        let rows = outs.first().or(ins.first()).ok_or("it has neither inputs nor outputs")?;
        let rows = if *rows.domain == Domain::Outs { Rows::Outs } else { Rows::Tokens };
        if rows != Rows::Tokens && op.states.iter().any(|(_, access)| *access != Access::Read) {
            return Err("it writes a state from other rows than those of the step".into());
        }
        Ok((kernel, rows))
    }

    fn value(&self, id: ValueId) -> ValueFacts<'a> {
        let value = self.recording.values[id.0 as usize];
        ValueFacts { domain: &self.recording.domains[usize::from(value.domain.0)], ty: value.ty, width: value.width }
    }

    fn operand(&self, operand: &OperandRef) -> Result<ValueFacts<'a>, String> {
        let whole = match operand.source {
            Source::Value(id) if self.written.contains(&id) => self.value(id),
            Source::Value(id) => return Err(format!("value {} is not written before", id.0)),
            Source::Input(id) => {
                let inputs = &self.recording.inputs;
                let input = inputs.get(id.0 as usize).ok_or_else(|| format!("row input {} of {}", id.0, inputs.len()))?;
                ValueFacts { domain: &self.recording.domains[usize::from(input.domain.0)], ty: input.ty, width: input.width }
            }
        };
        let end = u64::from(operand.col0) + u64::from(operand.ncols);
        if operand.ncols == 0 || end > u64::from(whole.width) {
            return Err(format!("columns {}..{end} of {}", operand.col0, whole.width));
        }
        Ok(ValueFacts { width: operand.ncols, ..whole })
    }

    fn weight(&self, id: WeightId) -> Result<WeightRef, String> {
        let weights = &self.description.weights;
        let weight = weights.get(id.0 as usize).ok_or_else(|| format!("weight {} of {}", id.0, weights.len()))?;
        // The description's rules left one or two dimensions.
        let (rows, cols) = if let [rows, cols] = weight.shape[..] { (rows, cols) } else { (1, weight.shape[0]) };
        Ok(WeightRef { id, rows, cols })
    }

    /// A state is written by its owner, once, and read after that: what stands there before is another step's. Others read it only when
    /// it is shared.
    fn state(&mut self, id: StateId, access: Access) -> Result<(&'a StateKind, Access), String> {
        let states = &self.description.states;
        let state = states.get(id.0 as usize).ok_or_else(|| format!("state {} of {}", id.0, states.len()))?;
        if state.owner != self.name {
            let role = shown(&state.role);
            if access != Access::Read {
                return Err(format!("state `{role}` belongs to `{}`, which alone may write it", state.owner));
            }
            if !state.shared {
                return Err(format!("state `{role}` belongs to `{}` and is not shared", state.owner));
            }
        }
        if matches!(state.kind, StateKind::Accumulator { .. }) != (access == Access::Update) {
            return Err(format!("state `{}`: access {access:?}; rows are read and appended, accumulators updated", shown(&state.role)));
        }
        match access {
            Access::Read if !self.stored.contains(&id) => Err(format!("state `{}` is read before it is written", shown(&state.role))),
            Access::Append | Access::Update if !self.stored.insert(id) => Err(format!("state `{}` is written twice", shown(&state.role))),
            _ => Ok(()),
        }?;
        Ok((&state.kind, access))
    }
}

impl Checked {
    /// The rows of a domain of this segment.
    pub(super) fn rows(&self, id: DomainId) -> Rows {
        self.domains[usize::from(id.0)]
    }
}
