//! Packed tensors against numbers that published packages decoded, and every refusal.

mod files;
mod hostile;
mod references;
mod views;

use coli_plugin_api::describe::View;
use coli_plugin_api::program::WeightId;
use coli_shaders::contract::WeightStore as _;
use coli_shaders::formats::Format;
use safetensors::Dtype;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::testing::{Stored, describe, model, model_with_notes};
use crate::{load, open};

/// A weight as loaded.
struct Loaded {
    format: Format,
    rows: usize,
    cols: usize,
    numbers: Vec<f32>,
}

fn try_weight(dir: &TempDir, shape: &[u32], view: View) -> coli_base::Result<Loaded> {
    let weights = load(&open(dir.path())?, &describe(shape, view), &mut |_, _| Ok(()))?;
    let view = weights.weight(WeightId(0)).unwrap();
    Ok(Loaded { format: view.format(), rows: view.rows(), cols: view.cols(), numbers: view.decode() })
}

fn weight(dir: &TempDir, shape: &[u32], view: View) -> Loaded {
    try_weight(dir, shape, view).unwrap()
}

/// Why the weight `w` of this shape is refused.
fn refusal(dir: &TempDir, shape: &[u32]) -> String {
    let error = try_weight(dir, shape, View::tensor("w")).map(|loaded| loaded.format).unwrap_err();
    assert_eq!(error.kind, coli_base::Kind::Refused);
    error.text
}

fn f32s(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn assert_same(got: &[f32], want: &[f32], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (at, (got, want)) in got.iter().zip(want).enumerate() {
        let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
        assert!(same, "{what}: number {at} is {got:e}, not {want:e}");
    }
}

/// A note that states something of `w`.
fn note(key: &'static str, value: Value) -> (&'static str, String) {
    (key, json!({ "w": value }).to_string())
}

/// `w` and its scales in the source engine's form: flat.
fn flat(values: usize, scales: usize) -> [Stored; 2] {
    [Stored::raw("w", Dtype::U8, &[values], vec![0; values]), Stored::raw("w.qs", Dtype::F32, &[scales], vec![0; 4 * scales])]
}
