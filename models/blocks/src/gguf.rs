//! GGUF files: the same models under other names.
//!
//! Their metadata is put into the words of `config.json` and their tensors into the published names' places, so that a plugin has one
//! reader and one description. What a converter changed besides names is the plugin's to know.

use coli_plugin_api::describe::{Description, ExpertView, TensorFact, View};
use coli_plugin_api::serde_json::{Map, Value};

/// Names that mean the same: that of published files, and that of GGUF files.
pub type Pairs = [(&'static str, &'static str)];

/// How one architecture's metadata and tensors are named.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// `general.architecture`, which its keys begin with.
    pub architecture: &'a str,
    /// Keys of `config.json`, and of the metadata behind the architecture.
    pub keys: &'static Pairs,
    /// How names of layers' tensors begin, up to the layer's number.
    pub layers: &'static str,
    /// Whole names of tensors.
    pub whole: &'static Pairs,
    /// Names of a layer's tensors, behind the layer's number; `{expert}` names stand for the tensor of all experts.
    pub in_layer: &'static Pairs,
}

impl Names<'_> {
    /// The metadata in the words of `config.json`.
    pub fn config(&self, metadata: &Value) -> Map<String, Value> {
        let value = |name: &str| metadata.get(format!("{}.{name}", self.architecture)).cloned();
        self.keys.iter().filter_map(|(key, name)| Some((key.to_string(), value(name)?))).collect()
    }

    /// An error about a key, with the name that it has in the file.
    pub fn in_the_files_words(&self, error: &str) -> String {
        let Some(rest) = error.strip_prefix("config.json: ") else { return error.into() };
        let key = rest.split('`').nth(1).unwrap_or_default();
        match self.keys.iter().find(|(known, _)| *known == key) {
            Some((_, name)) => format!("GGUF metadata: `{}.{name}`: {rest}", self.architecture),
            None => format!("GGUF metadata: {rest}"),
        }
    }

    /// Puts the file's names into a description's views. An error names a tensor that has no name there.
    pub fn rename(&self, d: &mut Description) -> Result<(), String> {
        rename(d, &|name| self.tensor(name))
    }

    /// The file's name of a tensor.
    pub fn tensor(&self, name: &str) -> Result<String, String> {
        let of = |pairs: &Pairs, name: &str| pairs.iter().find(|(published, _)| *published == name).map(|(_, name)| *name);
        let in_layer = || {
            let (number, rest) = name.strip_prefix(self.layers)?.split_once('.')?;
            Some(format!("blk.{number}.{}", of(self.in_layer, rest)?))
        };
        let found = of(self.whole, name).map(String::from).or_else(in_layer);
        found.ok_or_else(|| format!("tensor `{name}` has no name in GGUF files of {}", self.architecture))
    }
}

/// Puts other names into a description's views; experts are then parts of one tensor a matrix.
pub fn rename(d: &mut Description, name: &dyn Fn(&str) -> Result<String, String>) -> Result<(), String> {
    d.weights.iter_mut().try_for_each(|weight| rename_view(&mut weight.view, name))?;
    for layer in d.groups.iter_mut().flat_map(|group| &mut group.layers) {
        for view in [&mut layer.gate, &mut layer.up, &mut layer.down] {
            *view = match view {
                ExpertView::PerExpert(pattern) => ExpertView::Fused { tensor: name(pattern)?, start: 0 },
                ExpertView::Fused { tensor, start } => ExpertView::Fused { tensor: name(tensor)?, start: *start },
            };
        }
    }
    Ok(())
}

fn rename_view(view: &mut View, name: &dyn Fn(&str) -> Result<String, String>) -> Result<(), String> {
    match view {
        View::Tensor(tensor) => *tensor = name(tensor)?,
        View::Rows { of, .. } | View::Blocks { of, .. } | View::Flat(of) | View::Stacked(of) => rename_view(of, name)?,
        View::Concat(parts) => parts.iter_mut().try_for_each(|part| rename_view(part, name))?,
    }
    Ok(())
}

/// Rows of a stored matrix: a vocabulary's size is that of its table where the metadata does not say it.
pub fn stored_rows(tensors: &[TensorFact], name: &str) -> Option<Value> {
    let tensor = tensors.iter().find(|tensor| tensor.name == name)?;
    tensor.shape.first().copied().map(Value::from)
}

/// A number of the metadata, which may be a list with one for each layer that all agree.
pub fn common(value: &Value) -> Value {
    match value.as_array().map(Vec::as_slice) {
        Some([first, rest @ ..]) if rest.iter().all(|other| other == first) => first.clone(),
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coli_plugin_api::serde_json::json;

    const NAMES: Names<'static> = Names {
        architecture: "arch",
        keys: &[("hidden_size", "embedding_length"), ("layers", "block_count")],
        layers: "model.layers.",
        whole: &[("lm_head.weight", "output.weight")],
        in_layer: &[("q.weight", "attn_q.weight"), ("e.{expert}.g", "ffn_gate_exps.weight")],
    };

    #[test]
    fn metadata_and_errors_are_translated() {
        let config = NAMES.config(&json!({"arch.embedding_length": 8, "other.block_count": 2, "block_count": 3}));
        assert_eq!(Value::Object(config), json!({"hidden_size": 8}));
        let error = NAMES.in_the_files_words("config.json: `hidden_size` is missing");
        assert_eq!(error, "GGUF metadata: `arch.embedding_length`: `hidden_size` is missing");
        assert_eq!(NAMES.in_the_files_words("config.json: `x` is 1"), "GGUF metadata: `x` is 1");
        assert_eq!(NAMES.in_the_files_words("other"), "other");
        assert_eq!((common(&json!([2, 2])), common(&json!([1, 2])), common(&json!([]))), (json!(2), json!([1, 2]), json!([])));
    }

    #[test]
    fn tensors_are_found_under_the_files_names() {
        assert_eq!(NAMES.tensor("lm_head.weight").unwrap(), "output.weight");
        assert_eq!(NAMES.tensor("model.layers.12.q.weight").unwrap(), "blk.12.attn_q.weight");
        assert_eq!(NAMES.tensor("model.layers.0.e.{expert}.g").unwrap(), "blk.0.ffn_gate_exps.weight");
        assert!(NAMES.tensor("model.layers.0.k.weight").unwrap_err().contains("`model.layers.0.k.weight` has no name"));
        let mut d = Description::default();
        d.matrix("q", 1, 1, View::tensor("model.layers.3.q.weight").blocks(0, 1, 1, 1).flat());
        NAMES.rename(&mut d).unwrap();
        assert_eq!(d.weights[0].view, View::tensor("blk.3.attn_q.weight").blocks(0, 1, 1, 1).flat());
    }
}
