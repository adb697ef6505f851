//! Any bytes as a recording: what decodes has one re-encoding, and stands for each segment of the demo in turn.
#![no_main]

use std::sync::LazyLock;

use coli_chain::program::OpTable;
use coli_fuzz::{Recorded, build, demo};
use coli_plugin_api::codec;
use coli_plugin_api::program::{Recording, Source, ValueId};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

static OPS: LazyLock<OpTable> = LazyLock::new(OpTable::library);
static MODEL: LazyLock<Recorded> = LazyLock::new(demo);

fuzz_target!(|bytes: &[u8]| {
    let Ok(recording) = codec::decode(bytes) else { return };
    // The names of the input may be more, and in another order, than those that are used.
    let again = codec::encode(&recording).expect("what was decoded can be encoded");
    assert!(again.len() <= bytes.len());
    assert_eq!(codec::decode(&again).as_ref(), Ok(&recording));
    for index in 0..MODEL.recordings.len() {
        let mut recordings = MODEL.recordings.clone();
        recordings[index].1 = bytes.to_vec();
        let accepted = build(&MODEL.description, &recordings, &OPS);
        recordings[index].1.clone_from(&again);
        assert_eq!(build(&MODEL.description, &recordings, &OPS), accepted);
    }
});

// Half of the changes are of the bytes, with magic and length made true again; half are of the recording, so that its tables still fit.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed.is_multiple_of(2)
        && let Ok(mut recording) = codec::decode(&data[..size])
    {
        change(&mut recording, seed / 2);
        if let Ok(bytes) = codec::encode(&recording)
            && bytes.len() <= max_size
        {
            data[..bytes.len()].copy_from_slice(&bytes);
            return bytes.len();
        }
    }
    let size = fuzzer_mutate(data, size, max_size);
    if size >= 8 && !seed.is_multiple_of(16) {
        data[..4].copy_from_slice(&codec::MAGIC);
        data[4..8].copy_from_slice(&(size as u32).to_le_bytes());
    }
    size
});

/// One structural change, chosen by `seed`.
fn change(recording: &mut Recording, seed: u32) {
    let (kind, seed) = (seed % 11, seed / 11);
    let (ops, values) = (recording.ops.len(), recording.values.len());
    if ops == 0 || values == 0 {
        return;
    }
    let pick = |len: usize, salt: u32| (seed.rotate_left(salt) as usize) % len;
    let (one, two) = (pick(ops, 0), pick(ops, 13));
    let (value, other) = (pick(values, 5), pick(values, 17));
    let id = ValueId(other as u32);
    let donor = recording.ops[two].clone();
    let op = &mut recording.ops[one];
    match kind {
        0 => drop(recording.ops.remove(one)),
        1 => recording.ops.swap(one, two),
        2 => recording.ops.insert(one, donor),
        3 => op.name = donor.name,
        4 => op.params = donor.params,
        5 => op.ins.iter_mut().for_each(|operand| operand.source = Source::Value(id)),
        6 => op.outs.iter_mut().for_each(|out| *out = id),
        7 => recording.values[value] = recording.values[other],
        8 => recording.values.push(recording.values[value]),
        9 => recording.ports.iter_mut().skip(value).take(1).for_each(|port| port.value = id),
        _ => op.ins.extend(donor.ins),
    }
}
