//! Small stored models for this crate's tests.

use std::path::Path;

use coli_plugin_api::describe::{Activation, Description, ExpertGroup, ExpertLayer, ExpertView, GroupClass, View};
use safetensors::tensor::{Dtype, TensorView};

/// A tensor to store.
pub(crate) struct Stored {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Stored {
    pub(crate) fn raw(name: &str, dtype: Dtype, shape: &[usize], bytes: Vec<u8>) -> Self {
        Self { name: name.to_owned(), dtype, shape: shape.to_vec(), bytes }
    }

    /// Holds 0, 1, 2, ...
    pub(crate) fn f32(name: &str, shape: &[usize]) -> Self {
        let count: usize = shape.iter().product();
        let bytes = (0..count).flat_map(|i| (i as f32).to_le_bytes()).collect();
        Self::raw(name, Dtype::F32, shape, bytes)
    }

    /// Holds 0, 1, 2, ..., as far as bf16 can tell them apart.
    pub(crate) fn bf16(name: &str, shape: &[usize]) -> Self {
        let count: usize = shape.iter().product();
        let bytes = (0..count).flat_map(|i| ((i as f32).to_bits() >> 16).to_le_bytes()[..2].to_vec()).collect();
        Self::raw(name, Dtype::BF16, shape, bytes)
    }
}

/// Writes a safetensors file with the serializer of the `safetensors` crate.
pub(crate) fn save(path: &Path, tensors: &[Stored]) {
    save_with_notes(path, tensors, &[]);
}

/// The same with metadata.
pub(crate) fn save_with_notes(path: &Path, tensors: &[Stored], notes: &[(&str, String)]) {
    let views = tensors.iter().map(|t| (t.name.as_str(), TensorView::new(t.dtype, t.shape.clone(), &t.bytes).unwrap()));
    let notes = notes.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect::<std::collections::HashMap<_, _>>();
    std::fs::write(path, safetensors::serialize(views, (!notes.is_empty()).then_some(notes)).unwrap()).unwrap();
}

/// A file with this header text and so many bytes of data.
pub(crate) fn file_with_header(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(std::iter::repeat_n(1, data));
    bytes
}

/// A folder with a `config.json` and one file of tensors.
pub(crate) fn model(tensors: &[Stored]) -> tempfile::TempDir {
    model_with_notes(tensors, &[])
}

/// The same with metadata in the file.
pub(crate) fn model_with_notes(tensors: &[Stored], notes: &[(&str, String)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.json"), r#"{"model_type":"test"}"#).unwrap();
    save_with_notes(&dir.path().join("model.safetensors"), tensors, notes);
    dir
}

/// A description of one weight.
pub(crate) fn describe(shape: &[u32], view: View) -> Description {
    let mut description = Description::default();
    match *shape {
        [n] => drop(description.vector("w", n, view)),
        [rows, cols] => drop(description.matrix("w", rows, cols, view)),
        _ => panic!("{shape:?}"),
    }
    description
}

/// A description of one layer of experts.
pub(crate) fn experts(count: u32, width: u32, hidden: u32, gate: ExpertView, up: ExpertView, down: ExpertView) -> Description {
    let mut description = Description::default();
    description.group(ExpertGroup {
        role: "experts".into(),
        count,
        width,
        hidden,
        activation: Activation::Silu,
        weight_before_down: false,
        class: GroupClass::Main,
        layers: vec![ExpertLayer { gate, up, down }],
    });
    description
}
