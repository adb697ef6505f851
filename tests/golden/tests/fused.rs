//! A checkpoint that stores the experts of a layer in two tensors gives the bits of the one that stores three for each expert.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use coli_test_common::built;
use coli_test_golden::{append, cases, open_with_drafts};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

/// A tensor's type, shape and bytes.
type Stored = (Dtype, Vec<usize>, Vec<u8>);

/// Joins the experts' tensors as published releases of this architecture do: gate rows, then up rows, expert after expert.
fn fused(stored: BTreeMap<String, Stored>) -> BTreeMap<String, Stored> {
    let mut out = BTreeMap::new();
    let mut joined = 0;
    for (name, tensor) in &stored {
        let Some((prefix, rest)) = name.split_once(".experts.") else {
            out.insert(name.clone(), tensor.clone());
            continue;
        };
        if rest != "0.gate_proj.weight" {
            continue;
        }
        let part = |expert: usize, what: &str| stored.get(&format!("{prefix}.experts.{expert}.{what}_proj.weight"));
        let count = (0..).take_while(|expert| part(*expert, "gate").is_some()).count();
        let both: Vec<u8> =
            (0..count).flat_map(|expert| [part(expert, "gate"), part(expert, "up")]).flat_map(|t| t.unwrap().2.clone()).collect();
        let down: Vec<u8> = (0..count).flat_map(|expert| part(expert, "down").unwrap().2.clone()).collect();
        let (kind, hidden, width) = (tensor.0, tensor.1[0], tensor.1[1]);
        out.insert(format!("{prefix}.experts.gate_up_proj"), (kind, vec![count, 2 * hidden, width], both));
        out.insert(format!("{prefix}.experts.down_proj"), (kind, vec![count, width, hidden], down));
        joined += 1;
    }
    assert!(joined > 3, "only {joined} layers of experts were joined");
    out
}

fn read(path: &Path) -> BTreeMap<String, Stored> {
    let bytes = std::fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    file.tensors().into_iter().map(|(name, view)| (name, (view.dtype(), view.shape().to_vec(), view.data().to_vec()))).collect()
}

#[test]
fn fused_experts_give_the_bits_of_separate_ones() {
    let case = cases().into_iter().find(|case| case.name == "qwen36/qwen36").unwrap();
    let folder = tempfile::tempdir_in(built::home()).unwrap();
    std::fs::copy(case.folder.join("config.json"), folder.path().join("config.json")).unwrap();
    let tensors = fused(read(&case.folder.join("model.safetensors")));
    let views = tensors.iter().map(|(name, (kind, shape, data))| (name, TensorView::new(*kind, shape.clone(), data).unwrap()));
    safetensors::serialize_to_file(views, None, &folder.path().join("model.safetensors")).unwrap();
    let outputs = |mut engine: coli_app::engine::Engine| {
        let conv = engine.open_conversation();
        append(&mut engine, conv, &case.ids(), usize::MAX)
    };
    let (separate, fused) = (outputs(case.open()), outputs(open_with_drafts(folder.path())));
    assert!(!fused.drafts.is_empty());
    assert!(fused.bits() == separate.bits(), "other bits");
}
