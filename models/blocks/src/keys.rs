//! `config.json`, key by key: every value is checked, and an error names its key.

use std::ops::RangeInclusive;

use coli_plugin_api::serde_json::Value;

/// The most that any size of a model may be here; the host bounds what it allocates by itself.
pub const SIZE_MAX: u64 = 1 << 21;
/// Columns of a head, heads and experts: like the ranges of numbers, what the ops take, so that an error names the key and not an op's
/// parameter.
pub const COUNT_MAX: u64 = 1 << 16;
/// Layers of a model.
pub const LAYERS_MAX: u64 = 4000;
/// Positions of a context.
pub const CONTEXT_MAX: u64 = 1 << 26;
/// Numbers of an accumulator.
pub const ACCUMULATOR_MAX: u64 = 1 << 26;
/// Entries of a list: one for each layer, and then some.
const LIST_MAX: usize = 8192;

/// An object of `config.json`.
#[derive(Debug, Clone, Copy)]
pub struct Keys<'a> {
    json: &'a Value,
    /// The keys that lead to it.
    within: &'a str,
}

impl<'a> Keys<'a> {
    /// The file's top.
    pub fn top(json: &'a Value) -> Self {
        Self { json, within: "" }
    }

    /// The object under a key, `None` where there is none.
    pub fn object(&self, key: &'a str) -> Result<Option<Keys<'a>>, String> {
        match self.value(key) {
            None => Ok(None),
            Some(json) if json.is_object() => Ok(Some(Keys { json, within: key })),
            Some(_) => Err(self.bad(key, "an object")),
        }
    }

    /// The object under a key where there is one, else this one: language models inside larger ones have their keys in `text_config`.
    pub fn object_or_self(&self, key: &'a str) -> Result<Keys<'a>, String> {
        Ok(self.object(key)?.unwrap_or(*self))
    }

    /// A key's value; null is none.
    pub fn value(&self, key: &str) -> Option<&'a Value> {
        self.json.get(key).filter(|value| !value.is_null())
    }

    /// Names of all keys.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.json.as_object().into_iter().flat_map(|object| object.keys().map(String::as_str))
    }

    /// A whole number from 1 to `max`.
    pub fn size(&self, key: &str, max: u64) -> Result<u32, String> {
        self.required(key, self.optional_size(key, max)?)
    }

    /// The same where the key may be missing.
    pub fn optional_size(&self, key: &str, max: u64) -> Result<Option<u32>, String> {
        self.whole(key, 1..=max)
    }

    /// A whole number in a range, `None` where the key is missing.
    pub fn whole(&self, key: &str, range: RangeInclusive<u64>) -> Result<Option<u32>, String> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let found = value.as_u64().filter(|number| range.contains(number)).and_then(|number| u32::try_from(number).ok());
        found.map(Some).ok_or_else(|| self.bad(key, &format!("{} to {}", range.start(), range.end())))
    }

    /// A switch, `None` where the key is missing.
    pub fn flag(&self, key: &str) -> Result<Option<bool>, String> {
        let Some(value) = self.value(key) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.bad(key, "true or false"))
    }

    /// A number in a range, `None` where the key is missing.
    pub fn number(&self, key: &str, range: RangeInclusive<f64>) -> Result<Option<f64>, String> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let found = value.as_f64().filter(|number| range.contains(number));
        found.map(Some).ok_or_else(|| self.bad(key, &format!("a number from {} to {}", range.start(), range.end())))
    }

    /// A word, `None` where the key is missing.
    pub fn word(&self, key: &str) -> Result<Option<&'a str>, String> {
        let Some(value) = self.value(key) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.bad(key, "a word"))
    }

    /// A list of words, `None` where the key is missing.
    pub fn words(&self, key: &str) -> Result<Option<Vec<&'a str>>, String> {
        self.list(key, "a list of words", Value::as_str)
    }

    /// A list of whole numbers in a range, `None` where the key is missing.
    pub fn wholes(&self, key: &str, range: RangeInclusive<u64>) -> Result<Option<Vec<u32>>, String> {
        let what = format!("a list of numbers from {} to {}", range.start(), range.end());
        let number = |value: &Value| value.as_u64().filter(|number| range.contains(number)).and_then(|number| u32::try_from(number).ok());
        self.list(key, &what, number)
    }

    fn list<T>(&self, key: &str, what: &str, of: impl Fn(&'a Value) -> Option<T>) -> Result<Option<Vec<T>>, String> {
        let Some(value) = self.value(key) else { return Ok(None) };
        if let Some(list) = value.as_array().filter(|list| list.len() > LIST_MAX) {
            return Err(self.fault(key, &format!("has {} entries, expected at most {LIST_MAX}", list.len())));
        }
        let list = value.as_array().and_then(|list| list.iter().map(of).collect());
        list.map(Some).ok_or_else(|| self.bad(key, what))
    }

    /// An error where sizes multiply to more than a row may have.
    pub fn row(&self, key: &str, factors: &[u32]) -> Result<(), String> {
        self.product(key, "a row", factors, SIZE_MAX)
    }

    /// An error where the dimensions of an accumulator multiply to more than it may have.
    pub fn accumulator(&self, key: &str, factors: &[u32]) -> Result<(), String> {
        self.product(key, "an accumulator", factors, ACCUMULATOR_MAX)
    }

    /// An error where factors multiply to more than `max` numbers of what they make.
    pub fn product(&self, key: &str, what: &str, factors: &[u32], max: u64) -> Result<(), String> {
        let product = factors.iter().fold(1u64, |product, factor| product.saturating_mul(u64::from(*factor)));
        if product <= max { Ok(()) } else { Err(self.fault(key, &format!("makes {what} of {product} numbers, expected at most {max}"))) }
    }

    /// What a key must have, or that it is missing.
    pub fn required<T>(&self, key: &str, found: Option<T>) -> Result<T, String> {
        found.ok_or_else(|| self.fault(key, "is missing"))
    }

    /// An error unless the key is missing or has this value.
    pub fn only(&self, key: &str, value: &Value) -> Result<(), String> {
        match self.value(key) {
            Some(other) if other != value => Err(self.fault(key, &format!("{other} is not implemented"))),
            _ => Ok(()),
        }
    }

    /// An error where the key is there at all.
    pub fn absent(&self, key: &str) -> Result<(), String> {
        if self.value(key).is_some() { Err(self.fault(key, "is not implemented")) } else { Ok(()) }
    }

    /// The base of rotary frequencies where nothing scales them. Newer files hold `rope_parameters`, older ones `rope_theta` at the top
    /// with `rope_scaling` beside it.
    pub fn plain_rope_theta(&self) -> Result<f64, String> {
        let (parameters, scaling) = (self.object("rope_parameters")?, self.object("rope_scaling")?);
        for (key, object) in [("rope_parameters", parameters), ("rope_scaling", scaling)] {
            let Some(object) = object else { continue };
            match object.value("rope_type").or_else(|| object.value("type")) {
                Some(kind) if kind.as_str() == Some("default") => {}
                Some(kind) => return Err(format!("config.json: `rope_type` {kind} in `{key}` is not implemented")),
                // Without a type only a base frequency says nothing about scaling.
                None if object.names().all(|name| name == "rope_theta") => {}
                None => return Err(format!("config.json: `{key}` has no `rope_type`")),
            }
        }
        let theta = |keys: &Keys<'_>| keys.number("rope_theta", 1.0..=1e12);
        let nested = parameters.as_ref().map_or(Ok(None), theta)?;
        Ok(nested.map_or_else(|| theta(self), |theta| Ok(Some(theta)))?.unwrap_or(10_000.0))
    }

    /// An error that a key's value is not what it should be.
    pub fn bad(&self, key: &str, expected: &str) -> String {
        let value = self.json.get(key).unwrap_or(&Value::Null);
        self.fault(key, &format!("is {value}, expected {expected}"))
    }

    /// An error about a key.
    pub fn fault(&self, key: &str, what: &str) -> String {
        if self.within.is_empty() {
            format!("config.json: `{key}` {what}")
        } else {
            format!("config.json: `{key}` in `{}` {what}", self.within)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coli_plugin_api::serde_json::json;

    #[test]
    fn keys_are_found_where_they_are_and_faults_name_them() {
        let json = json!({
            "text_config": {"a": 3, "b": true, "c": 0.5, "d": "x", "e": ["x", "y"], "f": [1, 2], "g": null, "h": -1},
            "rope_scaling": {"factor": 2}
        });
        let top = Keys::top(&json);
        let keys = top.object_or_self("text_config").unwrap();
        assert_eq!(keys.size("a", 3), Ok(3));
        assert_eq!((keys.flag("b"), keys.number("c", 0.0..=1.0), keys.word("d")), (Ok(Some(true)), Ok(Some(0.5)), Ok(Some("x"))));
        assert_eq!(keys.words("e").unwrap().unwrap(), ["x", "y"]);
        assert_eq!(keys.wholes("f", 1..=2).unwrap().unwrap(), [1, 2]);
        assert_eq!((keys.optional_size("g", 1), keys.absent("g")), (Ok(None), Ok(())));
        let fault = |result: Result<u32, String>| result.unwrap_err();
        assert_eq!(fault(keys.size("a", 2)), "config.json: `a` in `text_config` is 3, expected 1 to 2");
        assert_eq!(fault(keys.size("g", 2)), "config.json: `g` in `text_config` is missing");
        assert_eq!(fault(keys.size("h", 2)), "config.json: `h` in `text_config` is -1, expected 1 to 2");
        assert_eq!(fault(top.size("a", 2)), "config.json: `a` is missing");
        assert!(keys.wholes("f", 2..=2).unwrap_err().contains("`f` in `text_config` is [1,2], expected a list of numbers from 2 to 2"));
        assert_eq!(keys.row("a", &[1 << 20, 2]), Ok(()));
        assert_eq!(
            fault(keys.row("a", &[1 << 20, 3]).map(|()| 0)),
            "config.json: `a` in `text_config` makes a row of 3145728 numbers, expected at most 2097152"
        );
        assert_eq!(keys.accumulator("a", &[1 << 20, 64]), Ok(()));
        assert!(keys.accumulator("a", &[u32::MAX; 3]).unwrap_err().contains("an accumulator of 18446744073709551615 numbers"));
        assert!(keys.words("f").is_err() && keys.word("a").is_err() && keys.flag("a").is_err() && keys.object("a").is_err());
        assert!(keys.only("a", &json!(3)).is_ok() && keys.only("z", &json!(3)).is_ok());
        assert_eq!(keys.only("a", &json!(4)).unwrap_err(), "config.json: `a` in `text_config` 3 is not implemented");
        assert_eq!(top.plain_rope_theta().unwrap_err(), "config.json: `rope_scaling` has no `rope_type`");
        assert_eq!(keys.plain_rope_theta(), Ok(10_000.0));
    }

    #[test]
    fn lists_without_end_are_refused() {
        let json = json!({"a": vec![0; LIST_MAX], "b": vec![0; LIST_MAX + 1]});
        let keys = Keys::top(&json);
        assert_eq!(keys.wholes("a", 0..=0).unwrap().unwrap().len(), LIST_MAX);
        assert_eq!(keys.wholes("b", 0..=0).unwrap_err(), "config.json: `b` has 8193 entries, expected at most 8192");
    }

    #[test]
    fn what_is_no_object_has_no_keys() {
        let json = json!([1, 2]);
        let keys = Keys::top(&json);
        assert!(keys.size("a", 1).is_err() && keys.object("a").unwrap().is_none() && keys.names().next().is_none());
    }
}
