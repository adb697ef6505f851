//! Models for the hostile plugin, and their logits, worked out here from the formulas.

use std::fs;
use std::path::Path;

use coli_test_cli::fresh;
use coli_test_common::compare::relative_error;
use coli_test_common::fixture;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::folder::Folder;

const VOCAB: usize = 8;
const WIDTH: usize = 4;
const LAYERS: usize = 2;
/// The tokens that are evaluated.
const IDS: [usize; 5] = [1, 5, 3, 3, 7];

/// A model's folder.
pub struct Model(TempDir);

impl Model {
    /// A model with this key in its configuration.
    pub fn with(key: &str, value: impl Into<Value>) -> Self {
        let folder = fresh();
        let mut config = json!({ "model_type": "hostile", "vocab": VOCAB, "width": WIDTH, "layers": LAYERS });
        config[key] = value.into();
        fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
        fs::write(folder.path().join("model.safetensors"), safetensors()).unwrap();
        Self(folder)
    }

    /// A model on which the plugin works.
    pub fn sound() -> Self {
        Self::with("behave", "")
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The tokens to evaluate.
    pub(crate) fn ids_text(&self) -> String {
        IDS.map(|id| id.to_string()).join(",")
    }

    /// Evaluates it with the plugins of a folder; the logits must be right.
    #[track_caller]
    pub fn evaluate(&self, folder: &Folder) -> String {
        let out = self.path().join("logits.safetensors");
        let finished = folder.eval(self).arg("--out").arg(&out).finish();
        assert_eq!(finished.code, Some(0), "{finished:#?}");
        let error = relative_error(&fixture::tensors(&out)["logits"].data, &logits());
        assert!(error < 1e-5, "logits are off by {error}");
        finished.stderr
    }
}

/// Row-major numbers that differ from tensor to tensor.
fn tensor(name: &str, len: usize) -> Vec<f32> {
    let seed = name.bytes().fold(7, |seed: usize, byte| (seed * 31 + usize::from(byte)) % 1009);
    (0..len).map(|index| ((seed + index * 37 + index * index * 5) % 101) as f32 / 64.0 - 0.75).collect()
}

fn tensors() -> Vec<(String, [usize; 2])> {
    let layers = (0..LAYERS).map(|index| (format!("layer.{index}"), [WIDTH, WIDTH]));
    let ends = [("embed".to_string(), [VOCAB, WIDTH]), ("head".to_string(), [VOCAB, WIDTH])];
    ends.into_iter().chain(layers).collect()
}

fn safetensors() -> Vec<u8> {
    let mut header = Map::new();
    let mut data: Vec<u8> = Vec::new();
    for (name, shape) in tensors() {
        let start = data.len();
        data.extend(tensor(&name, shape[0] * shape[1]).into_iter().flat_map(f32::to_le_bytes));
        header.insert(name, json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] }));
    }
    let header = Value::from(header).to_string();
    // Data begins at a multiple of eight.
    let header = format!("{header:<width$}", width = header.len().next_multiple_of(8));
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
}

/// The scores after each token.
fn logits() -> Vec<f32> {
    let matrix = |name: &str, rows: usize| -> Vec<Vec<f64>> {
        tensor(name, rows * WIDTH).chunks(WIDTH).map(|row| row.iter().map(|number| f64::from(*number)).collect()).collect()
    };
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let times = |matrix: &[Vec<f64>], row: &[f64]| matrix.iter().map(|weights| dot(weights, row)).collect::<Vec<f64>>();
    let embed = matrix("embed", VOCAB);
    let mut stream: Vec<Vec<f64>> = IDS.iter().map(|id| embed[*id].clone()).collect();
    for index in 0..LAYERS {
        let weights = matrix(&format!("layer.{index}"), WIDTH);
        let rows: Vec<Vec<f64>> = stream.iter().map(|row| times(&weights, row)).collect();
        for (at, row) in rows.iter().enumerate() {
            let shares: Vec<f64> = rows[..=at].iter().map(|seen| dot(row, seen).exp()).collect();
            let sum: f64 = shares.iter().sum();
            for (share, seen) in shares.iter().zip(&rows) {
                stream[at].iter_mut().zip(seen).for_each(|(to, from)| *to += share / sum * from);
            }
        }
    }
    let head = matrix("head", VOCAB);
    stream.iter().flat_map(|row| times(&head, row)).map(|number| number as f32).collect()
}
