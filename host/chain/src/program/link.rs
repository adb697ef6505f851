//! Joins checked segments: ports by name, values to slots.
//!
//! An input port reads the latest earlier output port of its name, which must agree in rows, type and width. Its rows are those of the
//! step: wanted rows run in slices, segment after segment, so that a later segment would find those of the last slice only.
//!
//! An input port lives to the end of every segment that reads it.
//! An output port lives to the end of its own segment at least (an observer may read it there), to its last reader, and to the program's
//! end when no later segment gives the name again (the host may read it there).

use std::collections::HashMap;

use coli_plugin_api::describe::Description;
use coli_plugin_api::program::{Direction, InputSource, OperandRef, Source, ValueId};

use super::scratch::{self, Life};
use super::segment::Checked;
use super::{LinkedOp, LinkedPort, LinkedSegment, Place, PlacedOperand, PortSpec, Program, ReadPort, RowInput, RowSource, Rows};

pub(super) fn link(
    description: Description,
    segments: Vec<Checked>,
    given: &[PortSpec],
    assign: scratch::Assign,
) -> Result<Program, String> {
    let ops_total: usize = segments.iter().map(|segment| segment.ops.len()).sum();
    let mut linker = Linker { lives: vec![], current: HashMap::new(), inputs: vec![] };
    for spec in given {
        let life = Life { rows: spec.rows, port: true, width: spec.width as usize, born: None, last: 0 };
        let value = linker.add(life);
        linker.current.insert(spec.name.clone(), Current { spec: spec.clone(), value, from: None });
    }
    let mut drafts = Vec::with_capacity(segments.len());
    let mut first_op = 0;
    for (number, segment) in segments.into_iter().enumerate() {
        let count = segment.ops.len();
        drafts.push(linker.segment(number, segment, first_op)?);
        first_op += count;
    }
    // What is current at the end stays readable.
    for current in linker.current.values() {
        linker.lives[current.value].last = ops_total;
    }
    let (slots, slot_of) = assign(&linker.lives, ops_total);
    let port = |(spec, value): (PortSpec, usize)| LinkedPort { spec, slot: slot_of[value] };
    let given = given.iter().enumerate().map(|(value, spec)| port((spec.clone(), value))).collect();
    let segments = drafts.into_iter().map(|draft| draft.place(&linker.lives, &slots, &slot_of)).collect();
    Ok(Program { segments, slots, inputs: linker.inputs, given, description })
}

struct Linker {
    lives: Vec<Life>,
    /// The latest output of each port name.
    current: HashMap<String, Current>,
    inputs: Vec<RowInput>,
}

/// A port's latest output.
#[derive(Clone)]
struct Current {
    spec: PortSpec,
    value: usize,
    /// The segment that gave it.
    from: Option<usize>,
}

/// A segment whose operands are values of the whole program.
struct Draft {
    segment: Checked,
    /// The program's value for each value of the segment.
    value_of: Vec<usize>,
    /// The program's row input for each input of the segment.
    input_of: Vec<usize>,
    outputs: Vec<(PortSpec, usize)>,
    reads: Vec<Current>,
}

impl Linker {
    fn add(&mut self, life: Life) -> usize {
        self.lives.push(life);
        self.lives.len() - 1
    }

    fn segment(&mut self, number: usize, segment: Checked, first_op: usize) -> Result<Draft, String> {
        let last_op = first_op + segment.ops.len().saturating_sub(1);
        let mut value_of = vec![usize::MAX; segment.recording.values.len()];
        let mut reads = vec![];
        for port in segment.recording.ports.iter().filter(|port| port.direction == Direction::In) {
            let current = self.read(&segment, spec(&segment, &port.name, port.value))?;
            value_of[port.value.0 as usize] = current.value;
            // The first rows' outputs may be there before the last rows are read.
            self.lives[current.value].last = self.lives[current.value].last.max(last_op);
            reads.push(current);
        }
        for (index, value) in value_of.iter_mut().enumerate().filter(|(_, value)| **value == usize::MAX) {
            let def = segment.recording.values[index];
            let port = segment.recording.ports.iter().any(|port| port.value.0 as usize == index);
            *value = self.add(Life { rows: segment.rows(def.domain), port, width: def.width as usize, born: None, last: 0 });
        }
        for (index, op) in segment.recording.ops.iter().enumerate() {
            let at = first_op + index;
            op.outs.iter().for_each(|id| self.lives[value_of[id.0 as usize]].born = Some(at));
            let over_outs = segment.ops[index].1 == Rows::Outs;
            for operand in &op.ins {
                let Source::Value(id) = operand.source else { continue };
                let life = &mut self.lives[value_of[id.0 as usize]];
                // A segment over wanted rows runs in slices, and each slice reads the step's rows again.
                let again = over_outs && life.rows == Rows::Tokens;
                life.last = life.last.max(if again { last_op } else { at });
            }
        }
        let outputs = self.outputs(number, &segment, &value_of, last_op);
        let input_of = segment.recording.inputs.iter().map(|input| {
            let source = match input.source {
                InputSource::Builtin(kind) => RowSource::Builtin(kind),
                InputSource::Ids { window } => RowSource::Ids { name: input.name.clone(), window: window.into() },
                InputSource::Host => unreachable!("refused by the segment's rules"),
            };
            self.input(RowInput { source, rows: segment.rows(input.domain), width: input.width as usize })
        });
        let input_of = input_of.collect();
        Ok(Draft { segment, value_of, input_of, outputs, reads })
    }

    /// The earlier output that a port reads.
    fn read(&self, segment: &Checked, want: PortSpec) -> Result<Current, String> {
        let (at, name) = (segment.name, &want.name);
        if want.rows == Rows::Outs {
            return Err(format!("{at}: port `{name}` comes in for wanted rows, which do not cross segments"));
        }
        match self.current.get(name) {
            Some(current) if current.spec == want => Ok(current.clone()),
            Some(current) => Err(format!("{at}: port `{name}` is {}, an earlier segment gives {}", shape(&want), shape(&current.spec))),
            None => Err(format!("{at}: no earlier segment gives port `{name}`")),
        }
    }

    fn outputs(&mut self, number: usize, segment: &Checked, value_of: &[usize], last_op: usize) -> Vec<(PortSpec, usize)> {
        let ports = segment.recording.ports.iter().filter(|port| port.direction == Direction::Out);
        let outputs: Vec<(PortSpec, usize)> =
            ports.map(|port| (spec(segment, &port.name, port.value), value_of[port.value.0 as usize])).collect();
        for (spec, value) in &outputs {
            self.lives[*value].last = self.lives[*value].last.max(last_op);
            self.current.insert(spec.name.clone(), Current { spec: spec.clone(), value: *value, from: Some(number) });
        }
        outputs
    }

    fn input(&mut self, input: RowInput) -> usize {
        self.inputs.iter().position(|known| *known == input).unwrap_or_else(|| {
            self.inputs.push(input);
            self.inputs.len() - 1
        })
    }
}

impl Draft {
    /// The segment with its values in their slots.
    fn place(self, lives: &[Life], slots: &[scratch::Slot], slot_of: &[usize]) -> LinkedSegment {
        let Self { segment, value_of, input_of, outputs, reads } = self;
        let sliced = segment.domains.contains(&Rows::Outs);
        let operand = |operand: &OperandRef| {
            let (place, stride) = match operand.source {
                Source::Value(id) => {
                    let value = value_of[id.0 as usize];
                    (Place::Slot(slot_of[value]), lives[value].width)
                }
                Source::Input(id) => (Place::Input(input_of[id.0 as usize]), segment.recording.inputs[id.0 as usize].width as usize),
            };
            PlacedOperand { place, stride, col0: operand.col0 as usize, ncols: operand.ncols as usize }
        };
        let output = |id: &ValueId| {
            let value = value_of[id.0 as usize];
            debug_assert!(slots[slot_of[value]].width >= lives[value].width);
            (slot_of[value], lives[value].width)
        };
        let ops = segment.recording.ops.iter().zip(segment.ops).map(|(op, (kernel, rows))| LinkedOp {
            id: op.name.clone(),
            kernel,
            rows,
            ins: op.ins.iter().map(operand).collect(),
            outs: op.outs.iter().map(output).collect(),
            weights: op.weights.clone(),
            states: op.states.iter().map(|(id, _)| *id).collect(),
            groups: op.groups.clone(),
        });
        let ops = ops.collect();
        let port = |spec: PortSpec, value: usize| LinkedPort { spec, slot: slot_of[value] };
        let outputs = outputs.into_iter().map(|(spec, value)| port(spec, value)).collect();
        let reads = reads.into_iter().map(|Current { spec, value, from }| ReadPort { port: port(spec, value), from });
        LinkedSegment { name: segment.name, ops, outputs, reads: reads.collect(), inputs: input_of, sliced }
    }
}

fn spec(segment: &Checked, name: &str, value: ValueId) -> PortSpec {
    let def = segment.recording.values[value.0 as usize];
    PortSpec { name: name.into(), rows: segment.rows(def.domain), ty: def.ty, width: def.width }
}

fn shape(spec: &PortSpec) -> String {
    format!("{} {:?} for each of {:?}", spec.width, spec.ty, spec.rows)
}
