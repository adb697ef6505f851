//! The environment, read once and typed.

use std::ffi::OsString;
use std::path::PathBuf;

use coli_base::{Error, Result};

use crate::places::Baked;
use crate::suggest::nearest;
use crate::table::{Key, PREFIX, Reader, SETTINGS, Setting};

/// What the environment says. An empty variable counts as one that is not set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// `COLI_MODEL`.
    pub model: Option<PathBuf>,
    /// `COLI_DEMO`.
    pub demo: Option<PathBuf>,
    /// `COLI_PLUGIN_PATH`, in order.
    pub plugin_path: Vec<PathBuf>,
    /// `COLI_HOME`.
    pub home: Option<PathBuf>,
    /// `XDG_DATA_HOME`, when absolute: its specification has relative ones ignored.
    pub data_home: Option<PathBuf>,
    /// `HOME`.
    pub user_home: Option<PathBuf>,
    /// What the build left in the binary.
    pub baked: Baked,
}

impl Environment {
    /// The environment of this process and build.
    #[allow(clippy::disallowed_methods)] // The one reader that the ban sends everyone to.
    pub fn read() -> Result<Self> {
        Self::from_values(std::env::vars_os(), Baked::of_this_build())
    }

    /// An environment with these variables.
    pub fn from_values(values: impl IntoIterator<Item = (OsString, OsString)>, baked: Baked) -> Result<Self> {
        let mut environment = Self { baked, ..Self::default() };
        let mut unknown = Vec::new();
        for (name, value) in values {
            let name = name.to_string_lossy();
            match Setting::by_env(&name) {
                _ if name == "XDG_DATA_HOME" => environment.data_home = path(value).filter(|path| path.is_absolute()),
                _ if name == "HOME" => environment.user_home = path(value),
                Some(setting) => environment.set(setting.reader, value),
                None if name.starts_with(PREFIX) => unknown.push(name.into_owned()),
                None => {}
            }
        }
        // The order of the variables is not ours; the error should not depend on it.
        unknown.sort();
        match unknown.first() {
            None => Ok(environment),
            Some(name) => Err(unknown_name(name)),
        }
    }

    fn set(&mut self, reader: Reader, value: OsString) {
        let Reader::Program(key) = reader else { return };
        match key {
            Key::Model => self.model = path(value),
            Key::Demo => self.demo = path(value),
            Key::Home => self.home = path(value),
            Key::PluginPath => self.plugin_path = path_list(&value),
        }
    }
}

/// A path, or `None` of an empty text.
fn path(value: OsString) -> Option<PathBuf> {
    (!value.is_empty()).then(|| PathBuf::from(value))
}

/// The folders of a list as in `PATH`, without empty ones.
pub(crate) fn path_list(value: &std::ffi::OsStr) -> Vec<PathBuf> {
    std::env::split_paths(value).filter(|path| !path.as_os_str().is_empty()).collect()
}

fn unknown_name(name: &str) -> Error {
    let known = SETTINGS.iter().map(|setting| setting.env);
    let advice = match nearest(name, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {}", known.collect::<Vec<_>>().join(", ")),
    };
    Error::usage(format!("environment variable `{}` is not a setting; {advice}", name.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use coli_base::Kind;

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
            ("XDG_DATA_HOME", "relative"),
            ("HOME", "/u"),
            ("PATH", "/bin"),
            ("coli_x", "1"),
        ])
        .unwrap();
        assert_eq!(environment.model, Some("m".into()));
        assert_eq!(environment.demo, None);
        assert_eq!(environment.plugin_path, [PathBuf::from("a"), PathBuf::from("b c")]);
        assert_eq!(environment.home, Some("/h".into()));
        assert_eq!((environment.data_home, environment.user_home), (None, Some("/u".into())));
        assert_eq!(of(&[]).unwrap(), Environment::default());
    }

    #[test]
    fn an_unknown_name_is_a_usage_error_with_advice() {
        let cases = [
            ("COLI_PLUGINPATH", "did you mean `COLI_PLUGIN_PATH`?"),
            ("COLI_MODELS", "did you mean `COLI_MODEL`?"),
            ("COLI_", "known are COLI_MODEL, COLI_DEMO, COLI_PLUGIN_PATH, COLI_HOME"),
            ("COLI_VERY_STRANGE_THING", "known are COLI_MODEL"),
        ];
        for (name, advice) in cases {
            let error = of(&[("COLI_ZZZ", "1"), (name, ""), ("COLI_HOME", "h")]).unwrap_err();
            assert_eq!(error.kind, Kind::Usage);
            assert!(error.text.contains(&format!("`{name}`")) && error.text.contains(advice), "{}", error.text);
        }
    }
}
