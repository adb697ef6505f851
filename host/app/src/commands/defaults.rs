//! What a model's own `generation_config.json` says of how tokens are chosen.

use coli_base::{Error, Result};
use coli_config::{Key, Setting, Source, Value, Values};
use serde_json::Value as Json;

/// The file.
pub(super) const FILE: &str = "generation_config.json";

/// Our settings, and the file's names for them.
const NAMES: [(Key, &str); 5] = [
    (Key::Temp, "temperature"),
    (Key::TopK, "top_k"),
    (Key::TopP, "top_p"),
    (Key::MinP, "min_p"),
    (Key::RepeatPenalty, "repetition_penalty"),
];

/// `given`, and where it says nothing the model's values. What is given already is not looked at, so that a model whose file is wrong
/// there can be run.
pub(super) fn with_model(mut given: Values, file: Option<&Json>) -> Result<Values> {
    let Some(file) = file else { return Ok(given) };
    let source = || Source::Model(FILE);
    if file.get("do_sample") == Some(&Json::Bool(false)) {
        given.add(Key::Temp, Value::Number(0.0), source());
    }
    for (key, name) in NAMES.into_iter().filter(|(key, _)| given.get(*key).is_none()).collect::<Vec<_>>() {
        let Some(value) = file.get(name).filter(|value| !value.is_null()) else { continue };
        let unit = Setting::of(key).unit;
        let read = value.as_u64().and_then(|whole| unit.whole(whole)).or_else(|| unit.number(value.as_f64()?));
        let read = read.ok_or_else(|| {
            Error::refused(format!("{FILE}: {name} is {value}, expected {}; {} would take its place", unit.expected(), given.named(key)))
        })?;
        given.add(key, read, source());
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use super::*;
    use coli_base::Kind;
    use serde_json::json;

    fn model(file: Json) -> Result<Values> {
        with_model(Values::default(), Some(&file))
    }

    #[test]
    fn the_models_values_are_taken_where_nothing_is_given() {
        let file = json!({"temperature": 0.6, "top_k": 20, "top_p": 1, "min_p": null, "repetition_penalty": 1.05, "eos_token_id": 3});
        let values = model(file.clone()).unwrap();
        assert_eq!((values.number(Key::Temp), values.count(Key::TopK), values.number(Key::TopP)), (0.6, 20, 1.0));
        assert_eq!((values.number(Key::RepeatPenalty), values.get(Key::MinP)), (1.05, None));
        assert!(matches!(values.get(Key::Temp), Some((_, Source::Model(FILE)))));
        let mut given = Values::default();
        given.add(Key::Temp, Value::Number(0.1), Source::CommandLine);
        assert_eq!(with_model(given, Some(&file)).unwrap().number(Key::Temp), 0.1);
        assert_eq!(with_model(Values::default(), None).unwrap(), Values::default());
    }

    #[test]
    fn a_model_that_does_not_sample_is_greedy() {
        let file = json!({"do_sample": false, "temperature": 0.6, "top_k": 5});
        let values = model(file).unwrap();
        assert_eq!((values.number(Key::Temp), values.count(Key::TopK)), (0.0, 5));
        assert_eq!(model(json!({"do_sample": true, "temperature": 0.6})).unwrap().number(Key::Temp), 0.6);
        assert_eq!(model(json!({})).unwrap(), Values::default());
    }

    #[test]
    fn a_wrong_value_names_file_key_and_the_option_instead() {
        for (file, parts) in [
            (json!({"temperature": "warm"}), ["temperature is \"warm\"", "from 0 to 100", "--temp"]),
            (json!({"top_k": 1.5}), ["top_k is 1.5", "whole number", "--top-k"]),
            (json!({"repetition_penalty": 0}), ["repetition_penalty is 0", "above 0", "--repeat-penalty"]),
        ] {
            let error = model(file).unwrap_err();
            assert_eq!(error.kind, Kind::Refused);
            for part in parts {
                assert!(error.text.contains(part), "{error}");
            }
        }
    }
}
