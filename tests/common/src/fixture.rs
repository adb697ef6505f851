//! Reads the reference files of a golden case.

use std::collections::HashMap;
use std::path::Path;

use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

/// Numbers of a tensor with its shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Dimensions, outermost first.
    pub shape: Vec<usize>,
    /// Row after row.
    pub data: Vec<f32>,
}

/// The f32 tensors of a safetensors file.
pub fn tensors(path: &Path) -> HashMap<String, Tensor> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let tensors = file.tensors().into_iter().filter(|(_, view)| view.dtype() == Dtype::F32);
    tensors
        .map(|(name, view)| {
            let data = view.data().chunks_exact(4).map(|word| f32::from_le_bytes(word.try_into().unwrap())).collect();
            (name, Tensor { shape: view.shape().to_vec(), data })
        })
        .collect()
}

/// A JSON file.
pub fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A list of token ids.
pub fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|id| u32::try_from(id.as_u64().unwrap()).unwrap()).collect()
}
