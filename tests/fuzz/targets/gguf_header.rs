//! Any bytes as a GGUF file: a checkpoint whose tensors can all be read, or refused.
#![no_main]

use std::sync::LazyLock;

use coli_plugin_api::describe::{Description, View};
use coli_store::{Checkpoint, Plan};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use tempfile::TempDir;

/// `run.sh` lets temporary folders lie in memory, and removes them.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a temporary folder"));

fuzz_target!(|bytes: &[u8]| {
    let path = FOLDER.path().join("model.gguf");
    std::fs::write(&path, bytes).expect("model.gguf is written");
    let Ok(checkpoint) = coli_store::open(&path) else { return };
    assert!(checkpoint.config().is_object());
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
    for tensor in checkpoint.tensors().iter().filter(|tensor| tensor.bytes > 0 && tensor.is_served()) {
        let whole = View::tensor(&tensor.name);
        let first = View::Rows { of: Box::new(whole.clone()), start: 0, count: 1, step: 1 };
        // Not empty, so no dimension is much longer than the file.
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

// Most changes lose the magic and version, which are put back, so that what follows them is what is tried.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let size = fuzzer_mutate(data, size, max_size);
    if !seed.is_multiple_of(16)
        && let Some(start) = data[..size].first_chunk_mut::<8>()
    {
        *start = *b"GGUF\x03\0\0\0";
    }
    size
});
