//! `config.json`, its keys checked and typed.

use coli_plugin_api::serde_json::Value;

/// The most that any size of a model may be here; the host bounds what it allocates by itself.
const SIZE_MAX: u64 = 1 << 21;

/// What the pass depends on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    pub hidden: u32,
    pub layers: u32,
    pub heads: u32,
    pub kv_heads: u32,
    pub head_width: u32,
    pub expert_hidden: u32,
    pub experts: u32,
    pub experts_used: u32,
    pub renormalise: bool,
    pub vocab: u32,
    pub context_max: u32,
    pub rope_theta: f64,
    pub norm_eps: f32,
    pub tied_embeddings: bool,
}

impl Config {
    /// Reads the keys; an error names the key.
    pub(crate) fn read(json: &Value) -> Result<Self, String> {
        let hidden = size(json, "hidden_size", SIZE_MAX)?;
        let heads = size(json, "num_attention_heads", 65536)?;
        let kv_heads = optional_size(json, "num_key_value_heads", 65536)?.unwrap_or(heads);
        if !hidden.is_multiple_of(heads) {
            return Err(format!("config.json: `num_attention_heads` {heads} does not divide `hidden_size` {hidden}"));
        }
        if !heads.is_multiple_of(kv_heads) {
            return Err(format!("config.json: `num_key_value_heads` {kv_heads} does not divide `num_attention_heads` {heads}"));
        }
        let head_width = hidden / heads;
        if !head_width.is_multiple_of(2) {
            return Err(format!("config.json: a head of {head_width} columns cannot be rotated in pairs"));
        }
        let experts = size(json, "num_experts", 65536)?;
        let experts_used = size(json, "num_experts_per_tok", 1024)?;
        if experts_used > experts {
            return Err(format!("config.json: `num_experts_per_tok` {experts_used} of `num_experts` {experts}"));
        }
        refuse_variants(json)?;
        Ok(Self {
            hidden,
            layers: size(json, "num_hidden_layers", 4000)?,
            heads,
            kv_heads,
            head_width,
            expert_hidden: size(json, "intermediate_size", SIZE_MAX)?,
            experts,
            experts_used,
            renormalise: flag(json, "norm_topk_prob")?.ok_or("config.json: `norm_topk_prob` is missing")?,
            vocab: size(json, "vocab_size", SIZE_MAX)?,
            context_max: size(json, "max_position_embeddings", 1 << 26)?,
            rope_theta: rope_theta(json)?,
            norm_eps: number(json, "rms_norm_eps")?.unwrap_or(1e-5) as f32,
            tied_embeddings: flag(json, "tie_word_embeddings")?.unwrap_or(false),
        })
    }
}

/// What the architecture allows and this plugin does not record yet is an error, not a guess.
fn refuse_variants(json: &Value) -> Result<(), String> {
    if !matches!(json.get("clip_qkv"), None | Some(Value::Null)) {
        return Err("config.json: `clip_qkv` is not implemented".into());
    }
    if flag(json, "attention_bias")?.unwrap_or(false) {
        return Err("config.json: `attention_bias` is not implemented".into());
    }
    match json.get("hidden_act").map(|act| act.as_str()) {
        None | Some(Some("silu")) => Ok(()),
        Some(other) => Err(format!("config.json: `hidden_act` {other:?} is not implemented")),
    }
}

/// Newer files hold `rope_parameters`, older ones the keys at the top.
fn rope_theta(json: &Value) -> Result<f64, String> {
    let parameters = json.get("rope_parameters").filter(|parameters| !parameters.is_null());
    let scaling = parameters.or_else(|| json.get("rope_scaling").filter(|scaling| !scaling.is_null()));
    let kind = scaling.and_then(|scaling| scaling.get("rope_type").or_else(|| scaling.get("type")));
    if let Some(kind) = kind.filter(|kind| kind.as_str() != Some("default")) {
        return Err(format!("config.json: rope of type {kind} is not implemented"));
    }
    let nested = parameters.map_or(Ok(None), |parameters| number(parameters, "rope_theta"))?;
    let theta = nested.map_or_else(|| number(json, "rope_theta"), |theta| Ok(Some(theta)))?.unwrap_or(10_000.0);
    if theta >= 1.0 { Ok(theta) } else { Err(format!("config.json: `rope_theta` is {theta}, expected at least 1")) }
}

fn size(json: &Value, key: &str, max: u64) -> Result<u32, String> {
    optional_size(json, key, max)?.ok_or_else(|| format!("config.json: `{key}` is missing"))
}

fn optional_size(json: &Value, key: &str, max: u64) -> Result<Option<u32>, String> {
    let Some(value) = json.get(key).filter(|value| !value.is_null()) else { return Ok(None) };
    let size = value.as_u64().filter(|size| (1..=max).contains(size));
    size.map(|size| Some(size as u32)).ok_or_else(|| format!("config.json: `{key}` is {value}, expected 1 to {max}"))
}

fn flag(json: &Value, key: &str) -> Result<Option<bool>, String> {
    match json.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(other) => Err(format!("config.json: `{key}` is {other}, expected true or false")),
    }
}

fn number(json: &Value, key: &str) -> Result<Option<f64>, String> {
    let Some(value) = json.get(key).filter(|value| !value.is_null()) else { return Ok(None) };
    value.as_f64().map(Some).ok_or_else(|| format!("config.json: `{key}` is {value}, expected a number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use coli_plugin_api::serde_json::json;

    fn good() -> Value {
        json!({
            "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 32,
            "num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": false, "vocab_size": 256, "max_position_embeddings": 512,
            "rms_norm_eps": 1e-5, "hidden_act": "silu"
        })
    }

    #[test]
    fn rope_theta_is_read_where_either_generation_of_files_has_it() {
        let theta = |extra: Value| {
            let mut json = good();
            json.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            Config::read(&json).map(|config| config.rope_theta)
        };
        assert_eq!(theta(json!({})), Ok(10_000.0));
        assert_eq!(theta(json!({"rope_theta": 5e5})), Ok(5e5));
        assert_eq!(theta(json!({"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}, "rope_theta": 5e5})), Ok(1e6));
        assert_eq!(theta(json!({"rope_parameters": null, "rope_scaling": null, "rope_theta": 5e5})), Ok(5e5));
        assert!(theta(json!({"rope_scaling": {"type": "yarn", "factor": 4}})).unwrap_err().contains("yarn"));
    }

    #[test]
    fn every_bad_key_is_named() {
        let bad = [
            ("hidden_size", json!(0)),
            ("hidden_size", json!(66)),
            ("num_hidden_layers", json!(4_000_000_000u64)),
            ("num_attention_heads", json!(0)),
            ("num_key_value_heads", json!(3)),
            ("num_experts_per_tok", json!(9)),
            ("norm_topk_prob", json!("no")),
            ("vocab_size", json!(-1)),
            ("clip_qkv", json!(8.0)),
            ("attention_bias", json!(true)),
            ("hidden_act", json!("gelu")),
            ("rms_norm_eps", json!("small")),
        ];
        for (key, value) in bad {
            let mut json = good();
            json[key] = value.clone();
            let error = Config::read(&json).unwrap_err();
            assert!(error.contains(key), "{key} = {value}: {error}");
        }
        assert!(Config::read(&json!([])).is_err());
    }
}
