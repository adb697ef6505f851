//! The format against itself, against bytes written by hand from `docs/ABI.md`, and against damage.

use super::*;
use proptest::prelude::*;

fn sample() -> Recording {
    let tokens = DomainId(0);
    Recording {
        domains: vec![Domain::Tokens, Domain::Outs, Domain::Host { name: "img".into(), max: 9 }, Domain::Fixed { rows: 4 }],
        inputs: vec![
            Input { name: "token".into(), domain: tokens, ty: Ty::I32, width: 1, source: InputSource::Builtin(Builtin::Token) },
            Input { name: "grams".into(), domain: tokens, ty: Ty::I32, width: 8, source: InputSource::Ids { window: 3 } },
        ],
        values: vec![ValueDef { domain: tokens, ty: Ty::F32, width: 6 }],
        ops: vec![OpRecord {
            name: "gather@1".into(),
            ins: vec![OperandRef { source: Source::Input(InputId(0)), col0: 0, ncols: 1 }],
            outs: vec![ValueId(0)],
            weights: vec![WeightId(5)],
            states: vec![(StateId(2), Access::Append)],
            groups: vec![GroupId(1)],
            params: vec![1, 2, 3],
        }],
        ports: vec![Port { direction: Direction::Out, name: "h".into(), value: ValueId(0) }],
    }
}

#[test]
fn a_recording_survives_the_border() {
    let bytes = encode(&sample()).unwrap();
    assert_eq!(decode(&bytes).unwrap(), sample());
    assert_eq!(decode(&encode(&Recording::default()).unwrap()).unwrap(), Recording::default());
}

/// Written by hand from the table in `docs/ABI.md`, so that the layout cannot drift with encoder and decoder together.
#[test]
fn the_bytes_are_those_of_the_document() {
    #[rustfmt::skip]
    let expected: Vec<u8> = [
        &b"CIR1"[..], &[99, 0, 0, 0],
        &[3, 0, 0, 0], &[5], b"token", &[8], b"gather@1", &[1], b"h",
        &[1, 0, 0, 0], &[0, 0, 0, 0, 0, 0, 0],
        &[1, 0, 0, 0], &[0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0],
        &[0, 0, 0, 0],
        &[1, 0, 0, 0], &[1, 0, 1, 0, 0, 0, 0], &[1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], &[2, 0], &[0xab, 0xcd],
        &[1, 0, 0, 0], &[1, 2, 0, 7, 0, 0, 0],
    ].concat();
    let recording = Recording {
        domains: vec![Domain::Tokens],
        inputs: vec![sample().inputs[0].clone()],
        values: vec![],
        ops: vec![OpRecord {
            name: "gather@1".into(),
            ins: vec![OperandRef { source: Source::Input(InputId(0)), col0: 0, ncols: 1 }],
            outs: vec![],
            weights: vec![],
            states: vec![],
            groups: vec![],
            params: vec![0xab, 0xcd],
        }],
        ports: vec![Port { direction: Direction::Out, name: "h".into(), value: ValueId(7) }],
    };
    assert_eq!(encode(&recording).unwrap(), expected);
    assert_eq!(decode(&expected).unwrap(), recording);
}

#[test]
fn every_truncation_and_every_trailing_byte_is_an_error() {
    let bytes = encode(&sample()).unwrap();
    for len in 0..bytes.len() {
        assert!(decode(&bytes[..len]).is_err(), "{len} bytes");
        // The same with a header that agrees, so that the tables themselves must notice.
        let mut cut = bytes[..len].to_vec();
        if len >= 8 {
            cut[4..8].copy_from_slice(&(len as u32).to_le_bytes());
            assert!(decode(&cut).is_err(), "{len} bytes with a header that agrees");
        }
    }
    let mut longer = bytes;
    longer.push(0);
    assert!(decode(&longer).unwrap_err().contains("header says"));
    let len = longer.len() as u32;
    longer[4..8].copy_from_slice(&len.to_le_bytes());
    assert!(decode(&longer).unwrap_err().contains("1 bytes are left over"));
}

#[test]
fn a_count_that_lies_is_refused_before_anything_is_allocated() {
    let mut bytes = encode(&Recording::default()).unwrap();
    bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(decode(&bytes).unwrap_err().contains("claims 4294967295 entries"));
}

#[test]
fn what_does_not_fit_a_field_is_refused_by_the_writer() {
    let mut recording = sample();
    recording.ops[0].outs = vec![ValueId(0); 256];
    assert!(encode(&recording).unwrap_err().contains("256 outputs"));
    let mut recording = sample();
    recording.ops[0].params = vec![0; 65536];
    assert!(encode(&recording).unwrap_err().contains("65536 bytes"));
    let mut recording = sample();
    recording.ports[0].name = "with space".into();
    assert!(encode(&recording).unwrap_err().contains("is not a name"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Any tables behind a header that is true.
    #[test]
    fn any_tables_never_panic(tables in prop::collection::vec(prop_oneof![3 => 0u8..3, 1 => any::<u8>()], 0..120)) {
        let len = 8 + tables.len() as u32;
        let bytes = [&MAGIC[..], &len.to_le_bytes(), &tables].concat();
        if let Ok(recording) = decode(&bytes) {
            let again = encode(&recording).unwrap();
            prop_assert!(again.len() <= bytes.len());
            prop_assert_eq!(decode(&again).unwrap(), recording);
        }
    }

    /// Damage is an error or another recording, which survives the border too; it is never a panic.
    #[test]
    fn damaged_bytes_never_panic(changes in prop::collection::vec((0usize..200, any::<u8>()), 1..8)) {
        let mut bytes = encode(&sample()).unwrap();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        if let Ok(recording) = decode(&bytes) {
            let again = encode(&recording).unwrap();
            prop_assert_eq!(decode(&again).unwrap(), recording);
        }
    }
}
