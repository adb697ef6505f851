//! For the tests of plugins: `config.json`s with changes, and the recording of what is read from them. No plugin uses it when it runs.
//!
//! A change is a function of numbers, so that a property test draws those and shrinks them.

use std::slice::Iter;

use coli_plugin_api::codec;
use coli_plugin_api::describe::{Description, SegmentName};
use coli_plugin_api::recorder::Recorder;
use coli_plugin_api::serde_json::{Map, Value};

/// `good` with some of its `places` changed; a place is the keys that lead to it, with dots between them. `words` are the strings that
/// values have.
pub fn changed(good: &Value, places: &[&str], words: &[&str], numbers: &[u64]) -> Value {
    let mut json = good.clone();
    let keys: Vec<&str> = places.iter().map(|place| last(place)).collect();
    let mut draw = Draw { numbers: numbers.iter(), keys: &keys, words };
    while draw.numbers.len() > 0 {
        let place = draw.one_of(places).unwrap_or_default();
        let value = draw.value(2);
        put(&mut json, place, value);
    }
    json
}

/// Any JSON.
pub fn any_json(places: &[&str], words: &[&str], numbers: &[u64]) -> Value {
    Draw { numbers: numbers.iter(), keys: places, words }.value(4)
}

/// `json` with a value at a place. Objects on the way there are made; what is no object has no places.
pub fn put(json: &mut Value, place: &str, value: Value) {
    let mut at = json;
    for key in place.split('.') {
        let Some(object) = at.as_object_mut() else { return };
        at = object.entry(key).or_insert_with(|| Map::new().into());
    }
    *at = value;
}

/// Whether an error says that it is about `config.json` and names one of the places' last keys.
pub fn names_a_key(error: &str, places: &[&str]) -> bool {
    error.starts_with("config.json: ") && places.iter().any(|place| error.contains(&format!("`{}`", last(place))))
}

/// Records the first segments and the last ones: a few of thousands of layers, which differ by their number. Gives how many, or the
/// first mistake.
pub fn record_some(description: &Description, record: impl Fn(SegmentName, &mut Recorder) -> Result<(), String>) -> Result<usize, String> {
    let segments = &description.segments;
    let chosen = segments.iter().take(8).chain(segments.iter().skip(8).rev().take(4));
    let mut count = 0;
    for segment in chosen {
        let mut recorder = Recorder::default();
        record(*segment, &mut recorder)?;
        codec::encode(&recorder.finish()?)?;
        count += 1;
    }
    Ok(count)
}

fn last(place: &str) -> &str {
    place.rsplit('.').next().unwrap_or_default()
}

struct Draw<'a> {
    numbers: Iter<'a, u64>,
    keys: &'a [&'a str],
    words: &'a [&'a str],
}

impl<'a> Draw<'a> {
    /// The next number; zeros when there are no more.
    fn next(&mut self) -> u64 {
        self.numbers.next().copied().unwrap_or_default()
    }

    fn one_of(&mut self, list: &[&'a str]) -> Option<&'a str> {
        let number = self.next();
        list.get(number.checked_rem(list.len() as u64)? as usize).copied()
    }

    /// Numbers mostly: small ones, whose divisions come out even now and then, and the absurd. Lists and objects to this depth.
    fn value(&mut self, depth: u32) -> Value {
        match self.next() % 16 {
            0..=5 => (self.next() % 20).into(),
            6 | 7 => (1u64 << (self.next() % 64)).into(),
            8 => (self.next() as i64).into(),
            9 => f64::from_bits(self.next()).into(),
            10 => (self.next() as f64 / u64::MAX as f64).into(),
            11 => (self.next() % 2 == 1).into(),
            12 => self.one_of(self.words).into(),
            13 if depth > 0 => {
                // All items are of one kind, as in the lists of real files.
                let (len, kind) = (self.next() % 8, self.next());
                let mut item = || {
                    let numbers = [kind, self.next()];
                    Draw { numbers: numbers.iter(), keys: self.keys, words: self.words }.value(depth - 1)
                };
                (0..len).map(|_| item()).collect()
            }
            14 if depth > 0 => {
                let len = self.next() % 4;
                let object: Map<String, Value> =
                    (0..len).filter_map(|_| Some((self.one_of(self.keys)?.to_string(), self.value(depth - 1)))).collect();
                object.into()
            }
            _ => Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coli_plugin_api::serde_json::json;

    #[test]
    fn numbers_say_what_changes_and_how() {
        let good = json!({"a": 1, "b": {"c": 2}});
        let change = |numbers: &[u64]| changed(&good, &["a", "b.c", "d.e"], &["x", "y"], numbers);
        assert_eq!(change(&[]), good);
        assert_eq!(change(&[0, 0, 25]), json!({"a": 5, "b": {"c": 2}}));
        assert_eq!(change(&[1, 6, 63, 2, 11, 1]), json!({"a": 1, "b": {"c": 1u64 << 63}, "d": {"e": true}}));
        assert_eq!(change(&[0, 13, 3, 12, 0, 1, 2]), json!({"a": ["x", "y", "x"], "b": {"c": 2}}));
        assert_eq!(change(&[0, 14, 1, 1, 0, 7]), json!({"a": {"c": 7}, "b": {"c": 2}}));
        assert_eq!(change(&[1, 15, 1, 9, f64::NAN.to_bits()]), json!({"a": 1, "b": {"c": null}}));
        assert_eq!(any_json(&[], &[], &[14, 3, 1]), json!({}));
    }

    #[test]
    fn what_is_no_object_has_no_places() {
        let mut json = json!({"a": 1});
        put(&mut json, "a.b", json!(2));
        assert_eq!(json, json!({"a": 1}));
        put(&mut json, "c.d", json!(3));
        assert_eq!(json, json!({"a": 1, "c": {"d": 3}}));
    }

    #[test]
    fn an_error_names_a_key_or_not() {
        assert!(names_a_key("config.json: `c` is 0", &["a", "b.c"]));
        for error in ["`c` is 0", "config.json: c is 0", "config.json: `cc` is 0"] {
            assert!(!names_a_key(error, &["a", "b.c"]), "{error}");
        }
    }

    #[test]
    fn the_first_and_the_last_segments_are_recorded() {
        let with = |layers: u32| Description { segments: (0..layers).map(SegmentName::Layer).collect(), ..Description::default() };
        let record = |segment: SegmentName, _: &mut Recorder| match segment {
            SegmentName::Layer(7 | 4000) => Err(segment.to_string()),
            _ => Ok(()),
        };
        assert_eq!(record_some(&with(3), record), Ok(3));
        assert_eq!(record_some(&with(9), record), Err("layer.7".into()));
        let good = |segment: SegmentName, recorder: &mut Recorder| record(segment, recorder).or(Ok(()));
        assert_eq!(record_some(&with(4000), good), Ok(12));
    }
}
