//! Writes a recording. Plugins call the typed record functions of `coli-shaders`, which call [`Recorder::op`].
//!
//! The first mistake is kept and returned by [`Recorder::finish`], so that record functions need no `?` at every op. The host checks the
//! whole recording again, from its bytes.

use crate::describe::WeightRef;
use crate::program::{
    Access, Builtin, Direction, Domain, DomainId, GroupId, Input, InputId, InputSource, OpRecord, OperandRef, Port, Recording, Source,
    StateId, Ty, ValueDef, ValueId,
};

/// A value or input, or a column range of one, as record functions pass it around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    /// What is read, and which columns.
    pub at: OperandRef,
    /// Its rows.
    pub domain: DomainId,
    /// What its numbers are.
    pub ty: Ty,
}

impl Operand {
    /// Columns.
    pub fn width(&self) -> u32 {
        self.at.ncols
    }

    /// `count` columns from `start` of this operand.
    ///
    /// # Panics
    /// When the range is not inside the operand: a mistake of the caller, reported as the plugin's.
    pub fn cols(&self, start: u32, count: u32) -> Self {
        let end = start.checked_add(count);
        assert!(count > 0 && end.is_some_and(|end| end <= self.at.ncols), "columns {start}+{count} of {}", self.at.ncols);
        let at = OperandRef { col0: self.at.col0 + start, ncols: count, ..self.at };
        Self { at, ..*self }
    }
}

/// An op call before its outputs have ids.
#[derive(Debug, Default)]
pub struct OpCall<'a> {
    /// `name@version`.
    pub name: &'a str,
    /// What it reads.
    pub ins: &'a [Operand],
    /// What it writes: domain, type and width of each output.
    pub outs: &'a [ValueDef],
    /// Its weights.
    pub weights: &'a [WeightRef],
    /// Its states.
    pub states: &'a [(StateId, Access)],
    /// Its expert groups.
    pub groups: &'a [GroupId],
    /// Its encoded parameters.
    pub params: Vec<u8>,
}

/// Builds one [`Recording`].
#[derive(Debug, Default)]
pub struct Recorder {
    recording: Recording,
    fault: Option<String>,
}

impl Recorder {
    /// The domain of the step's rows.
    pub fn tokens(&mut self) -> DomainId {
        self.domain(Domain::Tokens)
    }

    /// The domain of the rows whose outputs are wanted.
    pub fn outs(&mut self) -> DomainId {
        self.domain(Domain::Outs)
    }

    /// The id of a domain, which is added when it is new.
    pub fn domain(&mut self, domain: Domain) -> DomainId {
        let domains = &mut self.recording.domains;
        let index = domains.iter().position(|known| *known == domain).unwrap_or_else(|| {
            domains.push(domain);
            domains.len() - 1
        });
        DomainId(index as u16)
    }

    /// A built-in input of a domain's rows; `axes` is 1 but for rotary positions.
    pub fn builtin(&mut self, domain: DomainId, kind: Builtin, axes: u32) -> Operand {
        self.input(Input { name: kind.name().into(), domain, ty: Ty::I32, width: axes, source: InputSource::Builtin(kind) })
    }

    /// A row input, which is added when its name is new.
    pub fn input(&mut self, input: Input) -> Operand {
        let (domain, ty, width) = (input.domain, input.ty, input.width);
        let inputs = &mut self.recording.inputs;
        let index = inputs.iter().position(|known| *known == input).unwrap_or_else(|| {
            inputs.push(input);
            inputs.len() - 1
        });
        let at = OperandRef { source: Source::Input(InputId(index as u32)), col0: 0, ncols: width };
        Operand { at, domain, ty }
    }

    /// A value that an earlier segment gave under this name.
    pub fn port_in(&mut self, name: &str, domain: DomainId, ty: Ty, width: u32) -> Operand {
        let operand = self.value(ValueDef { domain, ty, width });
        self.port(Direction::In, name, operand)
    }

    /// Gives a whole value to later segments or to the host.
    pub fn port_out(&mut self, name: &str, operand: Operand) {
        self.port(Direction::Out, name, operand);
    }

    /// Records an op and returns its outputs.
    pub fn op<const N: usize>(&mut self, call: OpCall<'_>) -> [Operand; N] {
        if call.outs.len() != N {
            self.fail(format!("{}: {} outputs, {N} are used", call.name, call.outs.len()));
        }
        let filler = ValueDef { domain: DomainId(0), ty: Ty::F32, width: 1 };
        let outs: [Operand; N] = std::array::from_fn(|index| self.value(call.outs.get(index).copied().unwrap_or(filler)));
        self.recording.ops.push(OpRecord {
            name: call.name.into(),
            ins: call.ins.iter().map(|operand| operand.at).collect(),
            outs: outs.iter().filter_map(|operand| value_of(*operand)).collect(),
            weights: call.weights.iter().map(|weight| weight.id).collect(),
            states: call.states.to_vec(),
            groups: call.groups.to_vec(),
            params: call.params,
        });
        outs
    }

    /// Notes a mistake; the first one is what [`Recorder::finish`] returns.
    pub fn fail(&mut self, text: String) {
        self.fault.get_or_insert(text);
    }

    /// The recording, or the first mistake.
    pub fn finish(self) -> Result<Recording, String> {
        match self.fault {
            Some(text) => Err(text),
            None => Ok(self.recording),
        }
    }

    fn value(&mut self, def: ValueDef) -> Operand {
        self.recording.values.push(def);
        let id = ValueId(self.recording.values.len() as u32 - 1);
        let at = OperandRef { source: Source::Value(id), col0: 0, ncols: def.width };
        Operand { at, domain: def.domain, ty: def.ty }
    }

    fn port(&mut self, direction: Direction, name: &str, operand: Operand) -> Operand {
        let whole = |id: ValueId| {
            let width = self.recording.values.get(id.0 as usize).map(|def| def.width);
            operand.at.col0 == 0 && width == Some(operand.at.ncols)
        };
        match value_of(operand).filter(|id| whole(*id)) {
            Some(value) => self.recording.ports.push(Port { direction, name: name.into(), value }),
            None => self.fail(format!("port `{name}` is not a whole value")),
        }
        operand
    }
}

fn value_of(operand: Operand) -> Option<ValueId> {
    match operand.at.source {
        Source::Value(id) => Some(id),
        Source::Input(_) => None,
    }
}
