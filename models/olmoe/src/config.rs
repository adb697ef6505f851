//! `config.json`, its keys checked and typed.

use coli_blocks::keys::{CONTEXT_MAX, COUNT_MAX, Keys, LAYERS_MAX, SIZE_MAX};
use coli_plugin_api::serde_json::{Value, json};

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
        let keys = Keys::top(json);
        let hidden = keys.size("hidden_size", SIZE_MAX)?;
        let heads = keys.size("num_attention_heads", COUNT_MAX)?;
        let kv_heads = keys.optional_size("num_key_value_heads", COUNT_MAX)?.unwrap_or(heads);
        if !hidden.is_multiple_of(heads) {
            return Err(format!("config.json: `num_attention_heads` {heads} does not divide `hidden_size` {hidden}"));
        }
        if !heads.is_multiple_of(kv_heads) {
            return Err(format!("config.json: `num_key_value_heads` {kv_heads} does not divide `num_attention_heads` {heads}"));
        }
        let head_width = hidden / heads;
        if !head_width.is_multiple_of(2) || u64::from(head_width) > COUNT_MAX {
            return Err(format!(
                "config.json: `hidden_size` over `num_attention_heads` is {head_width}, expected an even number to {COUNT_MAX}"
            ));
        }
        let experts = keys.size("num_experts", COUNT_MAX)?;
        let experts_used = keys.size("num_experts_per_tok", 1024)?;
        if experts_used > experts {
            return Err(format!("config.json: `num_experts_per_tok` {experts_used} of `num_experts` {experts}"));
        }
        // What the architecture allows and this plugin does not record is an error, not a guess.
        keys.absent("clip_qkv")?;
        keys.only("attention_bias", &json!(false))?;
        keys.only("hidden_act", &json!("silu"))?;
        Ok(Self {
            hidden,
            layers: keys.size("num_hidden_layers", LAYERS_MAX)?,
            heads,
            kv_heads,
            head_width,
            expert_hidden: keys.size("intermediate_size", SIZE_MAX)?,
            experts,
            experts_used,
            renormalise: keys.required("norm_topk_prob", keys.flag("norm_topk_prob")?)?,
            vocab: keys.size("vocab_size", SIZE_MAX)?,
            context_max: keys.size("max_position_embeddings", CONTEXT_MAX)?,
            rope_theta: keys.plain_rope_theta()?,
            norm_eps: keys.number("rms_norm_eps", 0.0..=1.0)?.unwrap_or(1e-5) as f32,
            tied_embeddings: keys.flag("tie_word_embeddings")?.unwrap_or(false),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coli_blocks::testing::{any_json, changed, names_a_key, record_some};
    use coli_plugin_api::serde_json::json;
    use proptest::prelude::*;

    fn good() -> Value {
        json!({
            "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 32,
            "num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": false, "vocab_size": 256, "max_position_embeddings": 512,
            "rms_norm_eps": 1e-5, "hidden_act": "silu"
        })
    }

    /// How weights are stored is the host's matter.
    #[test]
    fn quantization_is_not_read() {
        let mut json = good();
        json["quantization_config"] = json!({"quant_method": "fp8", "weight_block_size": [128, 128]});
        Config::read(&json).unwrap();
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
            ("rope_parameters", json!("x")),
            ("rope_parameters", json!([1, 2])),
            ("rope_scaling", json!({"factor": 8})),
            ("attention_bias", json!(true)),
            ("hidden_act", json!("gelu")),
            ("rms_norm_eps", json!("small")),
            ("rms_norm_eps", json!(-1e-5)),
            ("rms_norm_eps", json!(1e300)),
            ("rope_theta", json!(0.5)),
            ("rope_theta", json!(1e13)),
            ("rope_scaling", json!({"rope_type": "yarn"})),
            ("rope_parameters", json!({"rope_theta": "large"})),
        ];
        for (key, value) in bad {
            let mut json = good();
            json[key] = value.clone();
            let error = Config::read(&json).unwrap_err();
            let inner = value.as_object().and_then(|keys| keys.keys().next());
            assert!(error.contains(key) || inner.is_some_and(|inner| error.contains(inner)), "{key} = {value}: {error}");
        }
        assert!(Config::read(&json!([])).is_err());
    }

    const KEYS: [&str; 19] = [
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "intermediate_size",
        "num_experts",
        "num_experts_per_tok",
        "norm_topk_prob",
        "vocab_size",
        "max_position_embeddings",
        "rms_norm_eps",
        "hidden_act",
        "clip_qkv",
        "attention_bias",
        "rope_theta",
        "rope_type",
        "rope_scaling",
        "rope_parameters",
        "tie_word_embeddings",
    ];

    const WORDS: [&str; 3] = ["silu", "default", "yarn"];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// What is read can be described and recorded.
        #[test]
        fn any_config_is_read_or_refused_by_key(numbers in prop::collection::vec(any::<u64>(), 1..12)) {
            let json = changed(&good(), &KEYS, &WORDS, &numbers);
            match Config::read(&json) {
                Ok(config) => {
                    let (model, description) = crate::weights::describe(&config);
                    let recorded = record_some(&description, |segment, r| crate::forward::record(&config, &model, segment, r));
                    prop_assert!(recorded.is_ok(), "{:?}: {}", recorded, json);
                }
                Err(error) => prop_assert!(names_a_key(&error, &KEYS), "{}: {}", error, json),
            }
        }

        #[test]
        fn any_json_is_read_or_refused(numbers in prop::collection::vec(any::<u64>(), 1..40)) {
            let _ = Config::read(&any_json(&KEYS, &WORDS, &numbers));
        }
    }
}
