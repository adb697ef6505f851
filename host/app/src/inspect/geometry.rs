//! A model's numbers, from the keys that published configurations have for them.

use coli_plugin_api::describe::Container;
use coli_store::Checkpoint;
use serde::Serialize;
use serde_json::Value;

/// `None` where the configuration does not say.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(PartialEq))]
pub struct Geometry {
    /// Layers.
    pub layers: Option<u64>,
    /// Width of the rows between layers.
    pub hidden: Option<u64>,
    /// Heads of queries; the most of any layer.
    pub heads: Option<u64>,
    /// Heads of keys and values; the most of any layer.
    pub kv_heads: Option<u64>,
    /// Routed experts of a layer.
    pub experts: Option<u64>,
    /// How many of them a token uses.
    pub experts_used: Option<u64>,
    /// Tokens.
    pub vocab: Option<u64>,
    /// Positions of the context.
    pub context: Option<u64>,
}

/// Where the text part of a model with more parts is configured.
const NESTED: [&str; 3] = ["text_config", "language_config", "llm_config"];

impl Geometry {
    /// From `config.json`, or from a GGUF file's metadata.
    pub fn of(checkpoint: &Checkpoint) -> Self {
        match checkpoint.container() {
            Container::Hf => Self::of_config(checkpoint.config()),
            Container::Gguf => {
                let tokens = checkpoint.metadata("tokenizer.ggml.tokens").and_then(|value| value.as_texts());
                let mut geometry = Self::of_gguf(checkpoint.config(), checkpoint.model_type().unwrap_or_default());
                geometry.vocab = geometry.vocab.or_else(|| tokens.map(|tokens| tokens.len() as u64));
                geometry
            }
        }
    }

    fn of_config(config: &Value) -> Self {
        let parts: Vec<&Value> = [config].into_iter().chain(NESTED.iter().filter_map(|key| config.get(key))).collect();
        let first = |keys: &[&str]| keys.iter().flat_map(|key| parts.iter().filter_map(move |part| part.get(key))).find_map(most);
        Self {
            layers: first(&["num_hidden_layers", "n_layers", "n_layer", "num_layers"]),
            hidden: first(&["hidden_size", "dim", "d_model", "n_embd"]),
            heads: first(&["num_attention_heads", "n_heads", "n_head"]),
            kv_heads: first(&["num_key_value_heads", "n_kv_heads", "num_kv_heads"]),
            experts: first(&["num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"]),
            experts_used: first(&["num_experts_per_tok", "num_experts_per_token", "n_activated_experts", "moe_topk", "moe_top_k"]),
            vocab: first(&["vocab_size"]),
            context: first(&["max_position_embeddings", "max_seq_len", "n_positions", "model_max_length"]),
        }
    }

    fn of_gguf(metadata: &Value, architecture: &str) -> Self {
        let get = |key: &str| metadata.get(format!("{architecture}.{key}")).and_then(most);
        Self {
            layers: get("block_count"),
            hidden: get("embedding_length"),
            heads: get("attention.head_count"),
            kv_heads: get("attention.head_count_kv"),
            experts: get("expert_count"),
            experts_used: get("expert_used_count"),
            vocab: get("vocab_size"),
            context: get("context_length"),
        }
    }

    /// Names and numbers, for a table.
    pub fn rows(&self) -> [(&'static str, Option<u64>); 8] {
        [
            ("layers", self.layers),
            ("hidden", self.hidden),
            ("heads", self.heads),
            ("kv heads", self.kv_heads),
            ("experts", self.experts),
            ("used", self.experts_used),
            ("vocab", self.vocab),
            ("context", self.context),
        ]
    }
}

/// A number, or the largest of a list with one for each layer.
fn most(value: &Value) -> Option<u64> {
    match value {
        Value::Array(list) => list.iter().filter_map(Value::as_u64).max(),
        one => one.as_u64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_found_where_they_are() {
        let expected = Geometry { layers: Some(3), heads: Some(8), experts: Some(9), experts_used: Some(2), ..Geometry::default() };
        let text = json!({"num_hidden_layers": 3, "num_attention_heads": 8, "n_routed_experts": 9, "num_experts_per_tok": 2});
        assert_eq!(Geometry::of_config(&text), expected);
        assert_eq!(Geometry::of_config(&json!({"text_config": text, "vocab_size": null, "hidden_size": "x"})), expected);
        let metadata = json!({"a.block_count": 3, "a.attention.head_count": [4, 8, 0], "a.expert_count": 9, "a.expert_used_count": 2});
        assert_eq!(Geometry::of_gguf(&metadata, "a"), expected);
        assert_eq!(Geometry::of_gguf(&metadata, "b"), Geometry::default());
    }
}
