//! The environment, read once and typed.

use std::ffi::OsString;
use std::path::PathBuf;

use coli_base::{Error, Result};

use crate::places::Baked;
use crate::suggest::nearest;
use crate::table::{PREFIX, Reader, SETTINGS, Setting};
use crate::value::{Source, Values};

/// What the environment says, and a file of settings where it says nothing. An empty variable counts as one that is not set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Environment {
    /// Values of settings.
    pub values: Values,
    /// The settings file that was read.
    pub file: Option<PathBuf>,
    /// `XDG_DATA_HOME`, when absolute: its specification has relative ones ignored.
    pub data_home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`, when absolute.
    pub config_home: Option<PathBuf>,
    /// `XDG_CACHE_HOME`, when absolute.
    pub cache_home: Option<PathBuf>,
    /// `HOME`.
    pub user_home: Option<PathBuf>,
    /// What the build left in the binary.
    pub baked: Baked,
}

impl Environment {
    /// The environment of this process, and what the build left in the program.
    #[allow(clippy::disallowed_methods)] // The one reader that the ban sends everyone to.
    pub fn read(baked: Baked) -> Result<Self> {
        Self::from_values(std::env::vars_os(), baked)
    }

    /// An environment with these variables.
    pub fn from_values(values: impl IntoIterator<Item = (OsString, OsString)>, baked: Baked) -> Result<Self> {
        let mut environment = Self { baked, ..Self::default() };
        let mut faults = Vec::new();
        for (name, value) in values.into_iter().map(|(name, value)| (name.to_string_lossy().into_owned(), value)) {
            match Setting::by_env(&name) {
                _ if name == "XDG_DATA_HOME" => environment.data_home = path(value).filter(|path| path.is_absolute()),
                _ if name == "XDG_CONFIG_HOME" => environment.config_home = path(value).filter(|path| path.is_absolute()),
                _ if name == "XDG_CACHE_HOME" => environment.cache_home = path(value).filter(|path| path.is_absolute()),
                _ if name == "HOME" => environment.user_home = path(value),
                Some(setting) => faults.extend(environment.set(setting, &value).err().map(|fault| (name, fault))),
                None if name.starts_with(PREFIX) => faults.push((name.clone(), unknown_name(&name))),
                None => {}
            }
        }
        // The order of the variables is not ours; the error should not depend on it.
        faults.sort();
        match faults.into_iter().next() {
            None => Ok(environment),
            Some((_, fault)) => Err(Error::usage(format!("environment variable {fault}"))),
        }
    }

    fn set(&mut self, setting: &'static Setting, value: &OsString) -> std::result::Result<(), String> {
        let Reader::Program(key) = setting.reader else { return Ok(()) };
        if value.is_empty() {
            return Ok(());
        }
        let parsed = setting.unit.parse(value);
        let parsed = parsed.map_err(|expected| format!("`{}` is `{}`: {expected}", setting.env, value.to_string_lossy().escape_debug()))?;
        self.values.add(key, parsed, Source::Environment(setting.env));
        Ok(())
    }
}

/// A path, or `None` of an empty text.
fn path(value: OsString) -> Option<PathBuf> {
    (!value.is_empty()).then(|| PathBuf::from(value))
}

fn unknown_name(name: &str) -> String {
    let known = SETTINGS.iter().map(|setting| setting.env);
    let advice = match nearest(name, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {}", known.collect::<Vec<_>>().join(", ")),
    };
    format!("`{}` is not a setting; {advice}", name.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Key;
    use coli_base::Kind;
    use std::path::Path;

    fn of(values: &[(&str, &str)]) -> Result<Environment> {
        Environment::from_values(values.iter().map(|(name, value)| (name.into(), value.into())), Baked::default())
    }

    #[test]
    fn values_are_typed_and_empty_ones_are_unset() {
        let list = std::env::join_paths(["a", "", "b c"]).unwrap();
        let environment = of(&[
            ("COLI_MODEL", "m"),
            ("COLI_DEMO", ""),
            ("COLI_PLUGIN_PATH", list.to_str().unwrap()),
            ("COLI_HOME", "/h"),
            ("COLI_TEMP", "0.25"),
            ("COLI_TOP_K", ""),
            ("XDG_DATA_HOME", "relative"),
            ("XDG_CONFIG_HOME", "/c"),
            ("HOME", "/u"),
            ("PATH", "/bin"),
            ("coli_x", "1"),
        ])
        .unwrap();
        let values = &environment.values;
        assert_eq!((values.path(Key::Model), values.path(Key::Demo)), (Some(Path::new("m")), None));
        assert_eq!(values.paths(Key::PluginPath), [PathBuf::from("a"), PathBuf::from("b c")]);
        assert_eq!(values.path(Key::Home), Some(Path::new("/h")));
        assert_eq!((values.number(Key::Temp), values.get(Key::TopK)), (0.25, None));
        assert_eq!((environment.data_home, environment.user_home), (None, Some("/u".into())));
        assert_eq!(environment.config_home, Some("/c".into()));
        assert_eq!(of(&[]).unwrap(), Environment::default());
    }

    #[test]
    fn an_unknown_name_is_a_usage_error_with_advice() {
        let cases = [
            ("COLI_PLUGINPATH", "did you mean `COLI_PLUGIN_PATH`?"),
            ("COLI_MODELS", "did you mean `COLI_MODEL`?"),
            ("COLI_", "known are COLI_MODEL, COLI_MODEL_PLUGIN, COLI_DEVICE"),
            ("COLI_VERY_STRANGE_THING", "known are COLI_MODEL"),
        ];
        for (name, advice) in cases {
            let error = of(&[("COLI_ZZZ", "1"), (name, ""), ("COLI_HOME", "h")]).unwrap_err();
            assert_eq!(error.kind, Kind::Usage);
            assert!(error.text.contains(&format!("`{name}`")) && error.text.contains(advice), "{}", error.text);
        }
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_a_usage_error_that_says_what_was_expected() {
        let error = of(&[("COLI_TEMP", "warm")]).unwrap_err();
        assert_eq!(error, Error::usage("environment variable `COLI_TEMP` is `warm`: expected a number from 0 to 100"));
        assert!(of(&[("COLI_CTX", "-4")]).unwrap_err().text.contains("`COLI_CTX` is `-4`: expected a whole number from 1"));
    }
}
