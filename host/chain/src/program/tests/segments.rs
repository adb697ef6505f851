//! Rules of a segment's tables, and of the ports between segments.

use coli_plugin_api::program::{
    Builtin, Direction, Domain, DomainId, InputId, InputSource, OperandRef, Port, Source, Ty, ValueDef, ValueId,
};

use super::super::description::WIDTH_MAX;
use super::*;

fn port(direction: Direction, name: &str, value: u32) -> Port {
    Port { direction, name: name.into(), value: ValueId(value) }
}

fn read(value: u32) -> OperandRef {
    OperandRef { source: Source::Value(ValueId(value)), col0: 0, ncols: 8 }
}

/// Adds a value that nothing writes; gives its id.
fn add_value(parts: &mut Parts, segment: SegmentName, def: ValueDef) -> u32 {
    let values = &mut parts.segment(segment).values;
    values.push(def);
    values.len() as u32 - 1
}

#[test]
fn ops_are_those_of_the_library_in_their_version() {
    all_refused(&[
        (|p| p.op(LAYER, "norm@1").name = "softmax@1".into(), "layer.0: op 0 softmax@1: this host has no such op"),
        (|p| p.op(LAYER, "norm@1").name = "norm@2".into(), "layer.0: op 0 norm@2: this host has no such op"),
        (|p| p.op(LAYER, "norm@1").name = "norm@01".into(), "layer.0: op 0 norm@01: this host has no such op"),
        (|p| p.op(LAYER, "norm@1").name = "norm".into(), "layer.0: op 0 norm: this host has no such op"),
        (|p| p.op(HEAD, "sample@1").name = "Sample@1".into(), "head: op 3 Sample@1: this host has no such op"),
    ]);
}

#[test]
fn a_value_is_written_once_and_before_it_is_read() {
    all_refused(&[
        (|p| p.op(LAYER, "norm@1").ins[0] = read(20), "layer.0: op 0 norm@1: input 0: value 20 is not written before"),
        (|p| p.op(LAYER, "norm@1").ins[0] = read(1), "layer.0: op 0 norm@1: input 0: value 1 is not written before"),
        (|p| p.op(LAYER, "norm@1").ins[0] = read(99), "layer.0: op 0 norm@1: input 0: value 99 is not written before"),
        (|p| p.segment(LAYER).ops.swap(0, 1), "layer.0: op 0 matmul@1: input 0: value 1 is not written before"),
        (|p| p.op(LAYER, "matmul@1").outs[0] = ValueId(1), "layer.0: op 1 matmul@1: output 0: value 1 is written twice"),
        (|p| p.op(LAYER, "norm@1").outs[0] = ValueId(0), "layer.0: op 0 norm@1: output 0: value 0 is written twice"),
        (|p| p.op(LAYER, "route@1").outs[1] = ValueId(12), "layer.0: op 12 route@1: output 1: value 12 is written twice"),
        (|p| p.op(LAYER, "norm@1").outs[0] = ValueId(99), "layer.0: op 0 norm@1: output 0: value 99 of 21"),
        (|p| p.op(LAYER, "norm@1").outs[0] = ValueId(u32::MAX), "layer.0: op 0 norm@1: output 0: value 4294967295 of 21"),
        (|p| p.segment(LAYER).ports.push(port(Direction::In, "g", 0)), "layer.0: port in `g`: value 0 is written twice"),
        (|p| p.segment(LAYER).ports.push(port(Direction::In, "g", 5)), "layer.0: op 4 rope@1: output 0: value 5 is written twice"),
        (|p| p.segment(LAYER).ports.push(port(Direction::In, "g", 77)), "layer.0: port in `g`: value 77 of 21"),
        (|p| drop(p.segment(LAYER).ports.remove(0)), "layer.0: op 0 norm@1: input 0: value 0 is not written before"),
        (|p| p.segment(LAYER).values.push(ValueDef { domain: DomainId(0), ty: Ty::F32, width: 1 }), "layer.0: value 21 is never written"),
        (|p| drop(p.segment(LAYER).ops.pop()), "layer.0: port out `h`: value 20 is never written"),
    ]);
}

#[test]
fn an_operand_is_a_column_range_of_what_it_reads() {
    all_refused(&[
        (|p| p.op(LAYER, "norm@1").ins[0].col0 = 1, "layer.0: op 0 norm@1: input 0: columns 1..9 of 8"),
        (|p| p.op(LAYER, "norm@1").ins[0].ncols = 0, "layer.0: op 0 norm@1: input 0: columns 0..0 of 8"),
        (|p| p.op(LAYER, "norm@1").ins[0].ncols = u32::MAX, "layer.0: op 0 norm@1: input 0: columns 0..4294967295 of 8"),
        (
            |p| {
                let operand = &mut p.op(LAYER, "norm@1").ins[0];
                (operand.col0, operand.ncols) = (u32::MAX, u32::MAX);
            },
            "layer.0: op 0 norm@1: input 0: columns 4294967295..8589934590 of 8",
        ),
        (|p| p.op(LAYER, "rope@1").ins[1].ncols = 2, "layer.0: op 4 rope@1: input 1: columns 0..2 of 1"),
        (|p| p.op(LAYER, "rope@1").ins[1].source = Source::Input(InputId(1)), "layer.0: op 4 rope@1: input 1: row input 1 of 1"),
        (
            |p| p.op(EMBED, "gather@1").ins[0].source = Source::Input(InputId(u32::MAX)),
            "embed: op 0 gather@1: input 0: row input 4294967295 of 1",
        ),
    ]);
}

#[test]
fn values_have_a_domain_and_a_width() {
    all_refused(&[
        (|p| p.segment(LAYER).values[3].domain = DomainId(1), "layer.0: value 3: domain 1 of 1"),
        (|p| p.segment(LAYER).values[3].domain = DomainId(u16::MAX), "layer.0: value 3: domain 65535 of 1"),
        (|p| p.segment(LAYER).values[3].width = 0, "layer.0: value 3: width 0, expected 1 to 2097152"),
        (|p| p.segment(LAYER).values[3].width = WIDTH_MAX + 1, "layer.0: value 3: width 2097153"),
        (|p| p.segment(LAYER).domains.clear(), "layer.0: input 0 `rpos`: domain 0 of 0"),
    ]);
}

#[test]
fn domains_are_the_two_kinds_once_each() {
    all_refused(&[
        (|p| p.segment(HEAD).domains.push(Domain::Tokens), "head: domain 2: Tokens stands twice"),
        (|p| p.segment(HEAD).domains.push(Domain::Outs), "head: domain 2: Outs stands twice"),
        (
            |p| p.segment(LAYER).domains.push(Domain::Host { name: "img".into(), max: 4 }),
            "layer.0: domain 1: Host { name: \"img\", max: 4 } not implemented",
        ),
        (|p| p.segment(LAYER).domains.push(Domain::Block { rows: 5 }), "layer.0: domain 1: Block { rows: 5 } not implemented"),
        (|p| p.segment(LAYER).domains.push(Domain::Fixed { rows: 1 }), "layer.0: domain 1: Fixed { rows: 1 } not implemented"),
    ]);
}

#[test]
fn inputs_are_built_in_ids_with_names_of_their_own() {
    all_refused(&[
        (|p| p.segment(LAYER).inputs[0].domain = DomainId(3), "layer.0: input 0 `rpos`: domain 3 of 1"),
        (|p| p.segment(LAYER).inputs[0].ty = Ty::F32, "layer.0: input 0 `rpos`: 1 F32 a row, expected 1..=4 I32"),
        (|p| p.segment(LAYER).inputs[0].width = 5, "layer.0: input 0 `rpos`: 5 I32 a row, expected 1..=4 I32"),
        (|p| p.segment(LAYER).inputs[0].width = 0, "layer.0: input 0 `rpos`: 0 I32 a row, expected 1..=4 I32"),
        (|p| p.segment(EMBED).inputs[0].width = 2, "embed: input 0 `token`: 2 I32 a row, expected 1..=1 I32"),
        (
            |p| p.segment(EMBED).inputs[0].source = InputSource::Builtin(Builtin::NextToken),
            "embed: input 0 `token`: the next token is known to draft segments only",
        ),
        (|p| p.segment(EMBED).inputs[0].source = InputSource::Host, "embed: input 0 `token`: rows that the host gives are not implemented"),
        (|p| p.segment(EMBED).inputs[0].source = InputSource::Ids { window: 0 }, "embed: input 0 `token`: a window of no tokens"),
        (
            |p| {
                p.segment(EMBED).inputs[0].source = InputSource::Ids { window: 3 };
                p.segment(EMBED).inputs[0].width = 5000;
            },
            "embed: input 0 `token`: 5000 I32 a row, expected 1..=4096 I32",
        ),
        (
            |p| {
                let inputs = &mut p.segment(EMBED).inputs;
                inputs.push(inputs[0].clone());
            },
            "embed: input 1: the name `token` stands twice",
        ),
    ]);
}

#[test]
fn a_port_stands_once_in_each_direction_and_is_written() {
    all_refused(&[
        (|p| p.segment(LAYER).ports.push(port(Direction::Out, "h", 1)), "layer.0: port `h` stands twice"),
        (|p| p.segment(LAYER).ports.push(port(Direction::Out, "g", 21)), "layer.0: port out `g`: value 21 is never written"),
        (
            |p| {
                let def = p.segment(LAYER).values[0];
                let id = add_value(p, LAYER, def);
                p.segment(LAYER).ports.push(port(Direction::In, "h", id));
            },
            "layer.0: port `h` stands twice",
        ),
    ]);
}

/// The layer reads its stream under another name, and `h` as a value of another shape.
fn reads_h_as(parts: &mut Parts, change: fn(&mut ValueDef)) {
    let mut def = parts.segment(LAYER).values[0];
    change(&mut def);
    let id = add_value(parts, LAYER, def);
    let layer = parts.segment(LAYER);
    layer.ports[0].name = "g".into();
    layer.ports.push(port(Direction::In, "h", id));
    parts.segment(EMBED).ports.push(port(Direction::Out, "g", 0));
}

#[test]
fn ports_of_two_segments_agree() {
    all_refused(&[
        (|p| p.segment(LAYER).ports[0].name = "x".into(), "layer.0: no earlier segment gives port `x`"),
        (|p| drop(p.segment(EMBED).ports.pop()), "layer.0: no earlier segment gives port `h`"),
        (
            |p| {
                let id = add_value(p, EMBED, ValueDef { domain: DomainId(0), ty: Ty::F32, width: 8 });
                p.segment(EMBED).ports.push(port(Direction::In, "h", id));
            },
            "embed: no earlier segment gives port `h`",
        ),
        (
            |p| reads_h_as(p, |def| def.width = 9),
            "layer.0: port `h` is 9 F32 for each of Tokens, an earlier segment gives 8 F32 for each of Tokens",
        ),
        (
            |p| reads_h_as(p, |def| def.ty = Ty::I32),
            "layer.0: port `h` is 8 I32 for each of Tokens, an earlier segment gives 8 F32 for each of Tokens",
        ),
        (
            |p| {
                p.segment(LAYER).domains.push(Domain::Outs);
                reads_h_as(p, |def| def.domain = DomainId(1));
            },
            "layer.0: port `h` comes in for wanted rows, which do not cross segments",
        ),
    ]);
}

/// The last slice's rows are all that a later segment would find.
#[test]
fn wanted_rows_do_not_cross_segments() {
    all_refused(&[(
        |p| {
            p.segment(LAYER).domains.push(Domain::Outs);
            let early = add_value(p, LAYER, ValueDef { domain: DomainId(1), ty: Ty::F32, width: 8 });
            let mut take = p.op(HEAD, "take@1").clone();
            take.outs = vec![ValueId(early)];
            p.segment(LAYER).ops.push(take);
            p.segment(LAYER).ports.push(port(Direction::Out, "early", early));
            let late = add_value(p, HEAD, ValueDef { domain: DomainId(1), ty: Ty::F32, width: 8 });
            p.segment(HEAD).ports.push(port(Direction::In, "early", late));
        },
        "head: port `early` comes in for wanted rows, which do not cross segments",
    )]);
}

/// What is unusual and right.
#[test]
fn unusual_but_right_programs_are_accepted() {
    let accepted = |change: fn(&mut Parts)| {
        let mut parts = Parts::new(2);
        change(&mut parts);
        parts.build().map(|_| ()).map_err(|error| error.text)
    };
    let pass_through = |recording: &mut coli_plugin_api::program::Recording| {
        recording.ops.clear();
        recording.inputs.clear();
        recording.values.truncate(1);
        recording.ports[1].value = ValueId(0);
    };
    let mut parts = Parts::new(2);
    pass_through(parts.segment(LAYER));
    assert!(parts.build().is_ok(), "a layer that hands its stream on");
    assert_eq!(accepted(|p| *p.segment(HEAD) = Default::default()), Ok(()), "an empty last segment");
    assert_eq!(accepted(|p| p.segment(LAYER).ports.push(port(Direction::Out, "again", 20))), Ok(()), "one value under two names");
    assert_eq!(accepted(|p| p.segment(LAYER).ports.push(port(Direction::Out, "before", 0))), Ok(()), "what came in under another name");
    assert_eq!(accepted(|p| p.segment(LAYER).domains.push(Domain::Outs)), Ok(()), "a domain that nothing uses");
}
