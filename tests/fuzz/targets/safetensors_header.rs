//! Any bytes as the `model.safetensors` of a folder: a checkpoint whose tensors can all be read, or refused.
#![no_main]

use std::sync::LazyLock;

use coli_plugin_api::describe::{Description, View};
use coli_store::{Checkpoint, Plan};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use tempfile::TempDir;

/// `run.sh` lets temporary folders lie in memory, and removes them.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("config.json"), r#"{"model_type":"olmoe"}"#).expect("config.json is written");
    folder
});

fuzz_target!(|bytes: &[u8]| {
    let folder = FOLDER.path();
    std::fs::write(folder.join("model.safetensors"), bytes).expect("model.safetensors is written");
    let Ok(checkpoint) = coli_store::open(folder) else { return };
    let held: u64 = checkpoint.tensors().iter().map(|tensor| tensor.bytes).sum();
    assert!(held <= bytes.len() as u64, "{held} bytes of tensors in a file of {}", bytes.len());
    let description = describe(&checkpoint);
    let plan = Plan::new(&checkpoint, &description).expect("every tensor is asked for as it is stored");
    let weights = plan.load(&mut |_, _| Ok(())).expect("every tensor lies in the file");
    assert!(weights.bytes() <= held + 64 * description.weights.len() as u64);
});

/// Every tensor that can be a weight, whole and by its first row.
fn describe(checkpoint: &Checkpoint) -> Description {
    let mut description = Description::default();
    let served = checkpoint.tensors().iter().filter(|tensor| tensor.bytes > 0 && ["f32", "f16", "bf16"].contains(&tensor.kind.as_str()));
    for tensor in served {
        let whole = View::tensor(&tensor.name);
        let first = View::Rows { of: Box::new(whole.clone()), start: 0, count: 1, step: 1 };
        // Not empty, so no dimension is longer than the file.
        match tensor.shape.iter().map(|dim| *dim as u32).collect::<Vec<_>>()[..] {
            [len] => drop(description.vector(&tensor.name, len, whole)),
            [rows, cols] => {
                description.matrix(&tensor.name, rows, cols, whole);
                description.matrix(&tensor.name, 1, cols, first);
            }
            _ => {}
        }
    }
    description
}

// Most changes leave the header's length wrong; it is made true again, so that the header itself is what is tried.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let size = fuzzer_mutate(data, size, max_size);
    if !seed.is_multiple_of(8)
        && let Some((length, rest)) = data[..size].split_first_chunk_mut::<8>()
        && let Some(end) = rest.iter().rposition(|byte| *byte == b'}')
    {
        *length = (end as u64 + 1).to_le_bytes();
    }
    size
});
