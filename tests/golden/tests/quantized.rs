//! The demo model as llama.cpp quantized it, in exact mode, against transformers on weights that the `gguf` package dequantized.
//!
//! The files (40 MB) lie beside the repository, not in it: `../shared/fixtures-gguf`. Where they are not, the run says so, and
//! `./coli.sh test --all` fails.
#![allow(clippy::unwrap_used)]

use std::io::Write as _;
use std::path::PathBuf;

use coli_test_common::compare::relative_error;
use coli_test_common::{built, fixture};
use coli_test_golden::{logits, open};

/// The largest error as a share of the largest logit.
const GATE: f32 = 1e-4;
const TYPES: [&str; 5] = ["Q8_0", "Q4_K_M", "IQ4_XS", "MXFP4_MOE", "Q2_K"];

fn folder() -> PathBuf {
    built::root().join("../shared/fixtures-gguf")
}

/// Compares every type.
fn compare() {
    let mut faults = vec![];
    for kind in TYPES {
        let folder = folder().join(kind);
        let reference = fixture::json(&folder.join("reference.json"));
        let positions = reference["exact_positions"].as_u64().unwrap() as usize;
        let ids = &fixture::ids(&reference["ids"])[..positions];
        let want: Vec<f32> = bytes(&folder.join("exact.f32"));
        let mut engine = open(&folder.join("model.gguf"));
        let conv = engine.open_conversation();
        let have = logits(&mut engine, conv, ids, usize::MAX);
        assert_eq!((have.len(), want.len()), (positions * 4096, positions * 4096));
        let error = relative_error(&have, &want);
        println!("{kind}: logits off by {error:e} of the largest, gate {GATE:e}");
        if error > GATE {
            faults.push(format!("{kind}: off by {error:e}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn bytes(path: &std::path::Path) -> Vec<f32> {
    let bytes = std::fs::read(path).unwrap();
    bytes.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

#[test]
fn quantized_models_are_exact() {
    if !folder().is_dir() {
        // Not by a macro: what those print of a test that passes is not shown.
        let line = format!("SKIPPED: {} is not there, so no quantized model was compared\n", folder().display());
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        return;
    }
    compare();
}

#[test]
#[ignore = "needs the files beside the repository"]
fn quantized_models_are_exact_and_there() {
    compare();
}
