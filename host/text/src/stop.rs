//! The ids that end a text.

use coli_base::{Error, Result};
use serde_json::Value;

use crate::gguf::GgufTokenizer;

const KEY: &str = "eos_token_id";

/// Ids that end a text; a model may have none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StopIds(Vec<u32>);

impl StopIds {
    /// Those of `generation_config.json`, else those of `config.json`, whose text part may be nested. A file that says nothing, or
    /// `null`, leaves the word to the next.
    pub fn from_json(generation: Option<&Value>, config: &Value) -> Result<Self> {
        let sources = [
            ("generation_config.json", generation.and_then(|json| json.get(KEY))),
            ("config.json", config.get(KEY)),
            ("config.json: text_config", config.get("text_config").and_then(|json| json.get(KEY))),
        ];
        for (source, value) in sources {
            if let Some(value) = value.filter(|value| !value.is_null()) {
                let ids = ids(value).ok_or_else(|| Error::refused(format!("{source}: {KEY} is {value}, not an id or a list of ids")));
                return ids.map(Self);
            }
        }
        Ok(Self::default())
    }

    /// Those in the metadata of a GGUF file: the ends of a text, a turn and a message.
    pub fn from_gguf(gguf: &GgufTokenizer) -> Self {
        let mut ids: Vec<u32> = [gguf.eos(), gguf.eot, gguf.eom].into_iter().flatten().collect();
        ids.sort_unstable();
        ids.dedup();
        Self(ids)
    }

    /// Whether `id` ends a text.
    pub fn contains(&self, id: u32) -> bool {
        self.0.contains(&id)
    }

    /// All of them.
    pub fn ids(&self) -> &[u32] {
        &self.0
    }
}

fn ids(value: &Value) -> Option<Vec<u32>> {
    let id = |value: &Value| u32::try_from(value.as_u64()?).ok();
    match value {
        Value::Array(list) => list.iter().map(id).collect(),
        one => Some(vec![id(one)?]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_source_that_speaks_is_believed() {
        let stop = |generation: Option<Value>, config: Value| StopIds::from_json(generation.as_ref(), &config).unwrap().0;
        assert_eq!(stop(Some(json!({KEY: 3})), json!({KEY: 4})), [3]);
        assert_eq!(stop(Some(json!({KEY: [3, 5]})), json!({KEY: 4})), [3, 5]);
        assert_eq!(stop(Some(json!({KEY: null})), json!({KEY: 4})), [4]);
        assert_eq!(stop(Some(json!({})), json!({KEY: null, "text_config": {KEY: [6]}})), [6]);
        assert_eq!(stop(None, json!({KEY: 0})), [0]);
        assert!(stop(None, json!({})).is_empty());
    }

    #[test]
    fn what_is_no_id_is_refused() {
        for bad in [json!("</s>"), json!(-1), json!(1.5), json!([1, "x"]), json!(4294967296u64), json!({})] {
            let error = StopIds::from_json(None, &json!({ KEY: bad })).unwrap_err();
            assert!(error.kind == coli_base::Kind::Refused && error.text.starts_with("config.json: eos_token_id is "), "{error}");
        }
    }

    #[test]
    fn ids_are_found() {
        let stop = StopIds::from_json(None, &json!({KEY: [1, 2]})).unwrap();
        assert!(stop.contains(2) && !stop.contains(3) && stop.ids() == [1, 2]);
    }
}
