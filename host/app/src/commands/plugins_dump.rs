//! `coli plugins dump`: what a plugin records of a model, one line for each input, port and op.
//!
//! A recording is printed as it came, before the host's own checks, so that one that is refused can be looked at. The text is meant to be
//! compared: it depends on the recording and the description alone.

use std::fmt::{Display, Write as _};
use std::io::Write as _;

use coli_base::Error;
use coli_config::Environment;
use coli_plugin_api::codec;
use coli_plugin_api::describe::{Description, SegmentName, StateKind};
use coli_plugin_api::program::{
    Access, Direction, Domain, DomainId, GroupId, InputSource, OpRecord, OperandRef, Recording, Source, StateId, Ty, ValueId, WeightId,
};
use coli_plugins::Recall;

use crate::cli::DumpArgs;
use crate::engine::{self, Described};

pub(super) fn run(args: &DumpArgs, environment: &Environment) -> anyhow::Result<()> {
    super::say_settings(environment);
    let plugin = super::requested_plugin(args.model_plugin.as_ref(), environment);
    let mut plugins = engine::discover_plugins(plugin.as_ref(), environment)?;
    plugins.check_apart(super::checker(environment, Recall::All)?);
    let Described { model, description, .. } = engine::describe(&args.model, &plugins)?;
    let names: Vec<SegmentName> = match args.segment {
        None => description.segments.clone(),
        Some(name) if description.segments.contains(&name) => vec![name],
        Some(name) => {
            let known: Vec<String> = description.segments.iter().map(SegmentName::to_string).collect();
            return Err(Error::usage(format!("--segment: the model has no segment {name}, only {}", known.join(", "))).into());
        }
    };
    let mut text = String::new();
    for name in names {
        let within = |fault: String| Error::refused(fault).within(name).within(format!("plugin {}", model.id()));
        let recording = codec::decode(&model.record(name)?).map_err(within)?;
        text.push_str(&segment(name, &recording, &description));
    }
    Ok(super::to_stdout(|out| out.write_all(text.as_bytes()))?)
}

/// A segment as text.
fn segment(name: SegmentName, recording: &Recording, description: &Description) -> String {
    let dump = Dump { recording, description };
    let mut text = format!("segment {name}\n");
    let mut line = |words: String| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {words}");
    };
    for (index, input) in recording.inputs.iter().enumerate() {
        let source = match input.source {
            InputSource::Host => "host".into(),
            InputSource::Builtin(kind) => format!("builtin {}", kind.name()),
            InputSource::Ids { window } => format!("ids of {window} tokens"),
        };
        let (name, domain) = (shown(&input.name), dump.domain(input.domain));
        line(format!("input i{index} {name}: {domain} {}[{}] from {source}", ty(input.ty), input.width));
    }
    for direction in [Direction::In, Direction::Out] {
        if direction == Direction::Out {
            recording.ops.iter().enumerate().for_each(|(index, op)| line(dump.op(index, op)));
        }
        let word = if direction == Direction::In { "in" } else { "out" };
        for port in recording.ports.iter().filter(|port| port.direction == direction) {
            line(format!("port {word} {}: {}", shown(&port.name), dump.value(port.value)));
        }
    }
    text
}

struct Dump<'a> {
    recording: &'a Recording,
    description: &'a Description,
}

impl Dump<'_> {
    /// `op 3 norm@1: v7 tokens f32[64] <- v4[0..64]; weights layer.0.norm[64]; params 0001`, without the parts that are empty.
    fn op(&self, index: usize, op: &OpRecord) -> String {
        let outs = list(&op.outs, |id| self.value(*id));
        let ins = list(&op.ins, operand);
        let mut words = format!("op {index} {}: {outs}{}<- {ins}", shown(&op.name), if outs.is_empty() { "" } else { " " });
        let parts = [
            ("weights", list(&op.weights, |id| self.weight(*id))),
            ("states", list(&op.states, |(id, access)| self.state(*id, *access))),
            ("groups", list(&op.groups, |id| self.group(*id))),
            ("params", op.params.iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))),
        ];
        parts.iter().filter(|(_, part)| !part.is_empty()).for_each(|(name, part)| words.push_str(&format!("; {name} {part}")));
        words
    }

    fn domain(&self, id: DomainId) -> String {
        match self.recording.domains.get(usize::from(id.0)) {
            None => format!("d{}?", id.0),
            Some(Domain::Tokens) => "tokens".into(),
            Some(Domain::Outs) => "outs".into(),
            Some(Domain::Host { name, max }) => format!("host({}, {max})", shown(name)),
            Some(Domain::Block { rows }) => format!("block({rows})"),
            Some(Domain::Fixed { rows }) => format!("fixed({rows})"),
        }
    }

    fn value(&self, id: ValueId) -> String {
        match self.recording.values.get(id.0 as usize) {
            Some(value) => format!("v{} {} {}[{}]", id.0, self.domain(value.domain), ty(value.ty), value.width),
            None => format!("v{}?", id.0),
        }
    }

    fn weight(&self, id: WeightId) -> String {
        let weight = self.description.weights.get(id.0 as usize);
        weight.map_or_else(|| format!("w{}?", id.0), |weight| format!("{}[{}]", shown(&weight.role), list_of(&weight.shape, "x")))
    }

    fn state(&self, id: StateId, access: Access) -> String {
        let Some(state) = self.description.states.get(id.0 as usize) else { return format!("s{}?", id.0) };
        let shape = match &state.kind {
            StateKind::Rows { parts, .. } => list_of(&parts.iter().map(|part| part.width).collect::<Vec<_>>(), "+"),
            StateKind::Accumulator { shape } => list_of(shape, "x"),
        };
        let access = match access {
            Access::Read => "read",
            Access::Append => "append",
            Access::Update => "update",
        };
        format!("{}[{shape}] {access}", shown(&state.role))
    }

    fn group(&self, id: GroupId) -> String {
        let group = self.description.groups.get(id.0 as usize);
        group.map_or_else(
            || format!("g{}?", id.0),
            |group| format!("{}[{} of {}x{}]", shown(&group.role), group.count, group.hidden, group.width),
        )
    }
}

fn operand(operand: &OperandRef) -> String {
    let (letter, id) = match operand.source {
        Source::Value(id) => ('v', id.0),
        Source::Input(id) => ('i', id.0),
    };
    format!("{letter}{id}[{}..{}]", operand.col0, u64::from(operand.col0) + u64::from(operand.ncols))
}

fn ty(ty: Ty) -> &'static str {
    match ty {
        Ty::F32 => "f32",
        Ty::I32 => "i32",
    }
}

fn list<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn list_of(numbers: &[u32], between: &str) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(between)
}

/// A plugin's own word, fit for a line.
fn shown(text: &str) -> impl Display + '_ {
    text.escape_debug()
}

#[cfg(test)]
mod tests {
    use super::*;
    use coli_plugin_api::describe::{Keep, RowPart, State, View};
    use coli_plugin_api::program::{Builtin, Input, Port, ValueDef};

    /// Lines worked by hand from the tables.
    #[test]
    fn every_part_of_a_recording_has_its_place() {
        let mut d = Description::default();
        d.matrix("layer.0.q", 4, 6, View::tensor("q"));
        let kind = StateKind::Rows { parts: vec![RowPart { width: 4, may_round: true }; 2], stride: 1, keep: Keep::All };
        d.state(State { role: "kv\n".into(), owner: SegmentName::Layer(0), shared: false, kind });
        let value = |domain, ty, width| ValueDef { domain: DomainId(domain), ty, width };
        let part = |source, col0, ncols| OperandRef { source, col0, ncols };
        let input =
            Input { name: "pos".into(), domain: DomainId(0), ty: Ty::I32, width: 1, source: InputSource::Builtin(Builtin::Position) };
        let op = OpRecord {
            name: "a.b@1".into(),
            ins: vec![part(Source::Value(ValueId(0)), 2, 4), part(Source::Input(coli_plugin_api::program::InputId(0)), 0, 1)],
            outs: vec![ValueId(1), ValueId(9)],
            weights: vec![WeightId(0), WeightId(3)],
            states: vec![(StateId(0), Access::Append), (StateId(5), Access::Read)],
            groups: vec![GroupId(2)],
            params: vec![0, 255, 16],
        };
        let stores = OpRecord { outs: vec![], weights: vec![], states: vec![], groups: vec![], params: vec![], ..op.clone() };
        let recording = Recording {
            domains: vec![Domain::Tokens, Domain::Fixed { rows: 3 }],
            inputs: vec![input],
            values: vec![value(0, Ty::F32, 6), value(1, Ty::I32, 4)],
            ops: vec![op, stores],
            ports: vec![
                Port { direction: Direction::Out, name: "y".into(), value: ValueId(1) },
                Port { direction: Direction::In, name: "h".into(), value: ValueId(0) },
            ],
        };
        let lines = [
            "segment layer.0",
            "  input i0 pos: tokens i32[1] from builtin pos",
            "  port in h: v0 tokens f32[6]",
            "  op 0 a.b@1: v1 fixed(3) i32[4], v9? <- v0[2..6], i0[0..1]; weights layer.0.q[4x6], w3?; states kv\\n[4+4] append, s5?; \
             groups g2?; params 00ff10",
            "  op 1 a.b@1: <- v0[2..6], i0[0..1]",
            "  port out y: v1 fixed(3) i32[4]",
            "",
        ];
        assert_eq!(segment(SegmentName::Layer(0), &recording, &d), lines.join("\n"));
    }
}
