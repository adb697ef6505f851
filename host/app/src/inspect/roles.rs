//! What a tensor is for, by the words of its name: those of published checkpoints, and those of GGUF files.

use serde::Serialize;

/// What a tensor is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The rows of tokens, and the matrix that gives their scores.
    Embedding,
    /// Attention of every kind, recurrences included.
    Attention,
    /// The experts that a router chooses among.
    RoutedExperts,
    /// Shared experts, and the MLPs of layers without experts.
    DenseMlp,
    /// Scales of norms.
    Norms,
    /// Routers, images, drafts, and what has no known name.
    Other,
}

impl Role {
    /// By the name's words, between dots.
    pub fn of(name: &str) -> Self {
        let words: Vec<&str> = name.split('.').collect();
        let any = |test: &dyn Fn(&str) -> bool| words.iter().any(|word| test(word));
        let is_one_of = |list: &[&str]| any(&|word| list.contains(&word));
        if any(&is_vision) {
            Self::Other
        } else if any(&|word| word.ends_with("_exps")) || is_one_of(&["experts"]) {
            Self::RoutedExperts
        } else if any(&|word| word.ends_with("_gate_inp") || word.ends_with("_gate_inp_shexp"))
            || is_one_of(&["gate", "router", "shared_expert_gate", "exp_probs_b"])
        {
            Self::Other
        } else if any(&|word| word.ends_with("norm")) {
            Self::Norms
        } else if is_one_of(&["shared_expert", "shared_experts"]) || any(&|word| word.ends_with("_shexp")) {
            Self::DenseMlp
        } else if is_one_of(&["self_attn", "attn", "attention", "linear_attn", "indexer"])
            || any(&|word| ["attn_", "ssm_", "indexer_"].iter().any(|start| word.starts_with(start)))
        {
            Self::Attention
        } else if is_one_of(&["mlp", "ffn", "feed_forward", "ffn_gate", "ffn_up", "ffn_down"]) {
            Self::DenseMlp
        } else if is_head(name) || is_one_of(&["embed_tokens", "token_embd", "tok_embeddings", "wte"]) || words[..] == ["embed", "weight"] {
            Self::Embedding
        } else {
            Self::Other
        }
    }

    /// For a table.
    pub fn words(self) -> &'static str {
        match self {
            Self::Embedding => "embedding",
            Self::Attention => "attention",
            Self::RoutedExperts => "routed experts",
            Self::DenseMlp => "dense MLP",
            Self::Norms => "norms",
            Self::Other => "other",
        }
    }
}

/// Whether it gives the scores of tokens.
pub fn is_head(name: &str) -> bool {
    name.split('.').any(|word| word == "lm_head") || ["output.", "head."].iter().any(|start| name.starts_with(start))
}

/// Whether text that is not drafted passes it by.
pub fn is_aside(name: &str) -> bool {
    name.split('.').any(|word| is_vision(word) || word == "mtp" || word == "nextn")
}

fn is_vision(word: &str) -> bool {
    ["visual", "vision_tower", "vision_model", "vision", "audio_tower", "v", "mm"].contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_roles() {
        for (role, names) in [
            (Role::Embedding, &["model.embed_tokens.weight", "lm_head.weight", "token_embd.weight", "output.weight", "embed.weight"][..]),
            (Role::Embedding, &["head.weight"]),
            (Role::Attention, &["model.layers.0.self_attn.q_proj.weight", "blk.3.attn_output.weight", "blk.0.ssm_conv1d.weight"]),
            (Role::Attention, &["model.layers.1.linear_attn.A_log", "layers.0.attn.wkv.weight", "blk.1.indexer.proj.weight"]),
            (Role::RoutedExperts, &["model.layers.0.mlp.experts.7.gate_proj.weight", "model.layers.0.mlp.experts.gate_up_proj"]),
            (Role::RoutedExperts, &["blk.0.ffn_down_exps.weight", "layers.1.ffn.experts.0.w1.scale"]),
            (Role::DenseMlp, &["model.layers.0.mlp.gate_proj.weight", "blk.0.ffn_up.weight", "blk.0.ffn_up_shexp.weight"]),
            (Role::DenseMlp, &["model.layers.0.mlp.shared_expert.up_proj.weight", "layers.1.ffn.shared_experts.w2.weight"]),
            (
                Role::Norms,
                &["model.norm.weight", "blk.0.attn_q_norm.weight", "model.layers.0.input_layernorm.weight", "output_norm.weight"],
            ),
            (Role::Other, &["model.layers.0.mlp.gate.weight", "blk.0.ffn_gate_inp.weight", "blk.0.exp_probs_b.bias", "rope_freqs.weight"]),
            (Role::Other, &["model.visual.blocks.0.attn.qkv.weight", "model.layers.0.mlp.shared_expert_gate.weight", ""]),
        ] {
            for name in names {
                assert_eq!(Role::of(name), role, "{name}");
            }
        }
        assert!(is_aside("mtp.fc.weight") && is_aside("blk.9.nextn.eh_proj.weight") && !is_aside("model.norm.weight"));
        assert!(is_head("output.weight") && !is_head("output_norm.weight") && !is_head("model.layers.0.shared_head.norm.weight"));
    }
}
