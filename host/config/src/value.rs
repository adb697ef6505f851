//! Values of settings, where each came from, and which source counts.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::table::{Key, Reader, SETTINGS, Setting, Unit};

/// A setting's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A file or folder.
    Path(PathBuf),
    /// Folders.
    Paths(Vec<PathBuf>),
    /// A word or name.
    Text(String),
    /// A whole number.
    Whole(u64),
    /// A number.
    Number(f32),
}

/// Where a value came from. The order is that in which sources count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// An option.
    CommandLine,
    /// A variable.
    Environment(&'static str),
    /// A settings file.
    File(PathBuf),
    /// A file of the model.
    Model(&'static str),
    /// Nobody said anything else.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine => f.write_str("command line"),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Model(file) => write!(f, "model's {file}"),
            Self::Default => f.write_str("default"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Paths(paths) => f.write_str(&paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")),
            Self::Text(text) => f.write_str(text),
            Self::Whole(number) => write!(f, "{number}"),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

impl Unit {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::PathList => "list of folders",
            Self::Text => "text",
            Self::Whole { of: "", .. } => "whole number",
            Self::Whole { of, .. } => of,
            Self::Number { .. } => "number",
        }
    }

    /// What a value must be, for messages.
    pub fn expected(self) -> String {
        match self {
            Self::Path => "a path".into(),
            Self::PathList => "a list of folders".into(),
            Self::Text => "a text".into(),
            Self::Whole { least, most, .. } => format!("a whole number from {least} to {most}"),
            Self::Number { least, closed: true, most } => format!("a number from {least} to {most}"),
            Self::Number { least, closed: false, most } => format!("a number above {least} and at most {most}"),
        }
    }

    /// Reads a value as the environment and the command line write it. The error says what was expected.
    pub fn parse(self, text: &OsStr) -> Result<Value, String> {
        let plain = text.to_str();
        let value = match self {
            Self::Path => (!text.is_empty()).then(|| Value::Path(text.into())),
            Self::PathList => Some(Value::Paths(path_list(text))),
            Self::Text => plain.filter(|text| !text.is_empty()).map(|text| Value::Text(text.into())),
            Self::Whole { .. } => plain.and_then(|text| self.whole(text.parse().ok()?)),
            Self::Number { .. } => plain.and_then(|text| self.number(text.parse().ok()?)),
        };
        value.ok_or_else(|| format!("expected {}", self.expected()))
    }

    /// A whole number that this unit allows.
    pub fn whole(self, number: u64) -> Option<Value> {
        match self {
            Self::Whole { least, most, .. } if (least..=most).contains(&number) => Some(Value::Whole(number)),
            _ => None,
        }
    }

    /// A number that this unit allows.
    pub fn number(self, number: f64) -> Option<Value> {
        let Self::Number { least, closed, most } = self else { return None };
        let number = number as f32;
        let above = if closed { number >= least } else { number > least };
        (above && number <= most).then_some(Value::Number(number))
    }
}

/// The folders of a list as in `PATH`, without empty ones.
pub(crate) fn path_list(value: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(value).filter(|path| !path.as_os_str().is_empty()).collect()
}

/// Values by key, each with its source.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Values(BTreeMap<Key, (Value, Source)>);

impl Values {
    /// Notes a value, unless there is one already: whoever counts more comes first.
    pub fn add(&mut self, key: Key, value: Value, source: Source) {
        self.0.entry(key).or_insert((value, source));
    }

    /// These values, and those of `others` where there are none.
    #[must_use]
    pub fn or(mut self, others: &Self) -> Self {
        others.0.iter().for_each(|(key, (value, source))| self.add(*key, value.clone(), source.clone()));
        self
    }

    /// These values, and the table's plain defaults where there are none.
    #[must_use]
    pub fn or_defaults(mut self) -> Self {
        for setting in SETTINGS {
            if let (Reader::Program(key), Some(value)) = (setting.reader, setting.default_value()) {
                self.add(key, value, Source::Default);
            }
        }
        self
    }

    /// A value with its source.
    pub fn get(&self, key: Key) -> Option<(&Value, &Source)> {
        self.0.get(&key).map(|(value, source)| (value, source))
    }

    /// A path.
    pub fn path(&self, key: Key) -> Option<&Path> {
        match self.get(key)?.0 {
            Value::Path(path) => Some(path),
            _ => None,
        }
    }

    /// A list of folders; empty where it is not set.
    pub fn paths(&self, key: Key) -> &[PathBuf] {
        match self.get(key) {
            Some((Value::Paths(paths), _)) => paths,
            _ => &[],
        }
    }

    /// A text.
    pub fn text(&self, key: Key) -> Option<&str> {
        match self.get(key)?.0 {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number.
    pub fn whole(&self, key: Key) -> Option<u64> {
        match self.get(key)?.0 {
            Value::Whole(number) => Some(*number),
            _ => None,
        }
    }

    /// A count, which fits 32 bits by its unit; 0 where it is not set.
    pub fn count(&self, key: Key) -> u32 {
        self.whole(key).and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
    }

    /// A number; 0 where it is not set.
    pub fn number(&self, key: Key) -> f32 {
        match self.get(key) {
            Some((Value::Number(number), _)) => *number,
            _ => 0.0,
        }
    }

    /// What names a setting in a message: the option where it was one, else where it came from.
    pub fn named(&self, key: Key) -> String {
        let setting = Setting::of(key);
        match self.get(key) {
            None | Some((_, Source::CommandLine)) => format!("--{}", setting.key.replace('_', "-")),
            Some((_, source)) => format!("{} ({source})", setting.key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(key: Key, text: &str) -> Result<Value, String> {
        Setting::of(key).unit.parse(OsStr::new(text))
    }

    #[test]
    fn texts_are_typed_and_kept_in_range() {
        assert_eq!(parse(Key::Temp, "0.5"), Ok(Value::Number(0.5)));
        assert_eq!(parse(Key::Temp, "0"), Ok(Value::Number(0.0)));
        assert_eq!(parse(Key::Seed, "18446744073709551615"), Ok(Value::Whole(u64::MAX)));
        assert_eq!(parse(Key::Device, "NVIDIA H200"), Ok(Value::Text("NVIDIA H200".into())));
        assert_eq!(parse(Key::Model, "a b"), Ok(Value::Path("a b".into())));
        for text in ["-1", "nan", "inf", "100.5", "warm", ""] {
            assert_eq!(parse(Key::Temp, text), Err("expected a number from 0 to 100".into()), "{text}");
        }
        for text in ["0", "-0.5", "1.5", "nan"] {
            assert_eq!(parse(Key::TopP, text), Err("expected a number above 0 and at most 1".into()), "{text}");
        }
        for text in ["-1", "4294967296", "1.5", "0x1", "0"] {
            assert_eq!(parse(Key::Ctx, text), Err("expected a whole number from 1 to 4294967295".into()), "{text}");
        }
    }

    #[test]
    fn the_first_source_counts_and_defaults_come_last() {
        let of = |number: f32, source: Source| {
            let mut values = Values::default();
            values.add(Key::Temp, Value::Number(number), source);
            values
        };
        let (line, variable) = (of(0.1, Source::CommandLine), of(0.2, Source::Environment("COLI_TEMP")));
        let (file, model) = (of(0.3, Source::File("f".into())), of(0.4, Source::Model("g")));
        let layers = [&line, &variable, &file, &model];
        for first in 0..layers.len() {
            let merged = layers[first..].iter().fold(Values::default(), |merged, layer| merged.or(layer)).or_defaults();
            assert_eq!(merged.get(Key::Temp), layers[first].get(Key::Temp));
        }
        let nothing = Values::default().or_defaults();
        assert_eq!(nothing.get(Key::Temp), Some((&Value::Number(0.8), &Source::Default)));
        assert_eq!((nothing.get(Key::Seed), nothing.count(Key::Tokens)), (None, 256));
    }

    #[test]
    fn a_message_names_the_option_or_the_source() {
        let mut values = Values::default();
        values.add(Key::TopP, Value::Number(0.5), Source::CommandLine);
        values.add(Key::Device, Value::Text("x".into()), Source::Environment("COLI_DEVICE"));
        values.add(Key::Precision, Value::Text("x".into()), Source::File("a/coli.toml".into()));
        assert_eq!(values.named(Key::TopP), "--top-p");
        assert_eq!(values.named(Key::Device), "device (environment COLI_DEVICE)");
        assert_eq!(values.named(Key::Precision), "precision (file a/coli.toml)");
    }
}
