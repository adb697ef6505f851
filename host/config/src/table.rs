//! Every setting, once.

/// A setting's identity in code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// The model to run.
    Model,
    /// The demo model's folder.
    Demo,
    /// Folders of plugins.
    PluginPath,
    /// What counts as the folder of the executable.
    Home,
}

/// What a setting's text is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A file or folder.
    Path,
    /// Folders, written as in `PATH`.
    PathList,
}

impl Unit {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::PathList => "list of folders",
        }
    }
}

/// Who acts on a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// The program.
    Program(Key),
    /// Only the script around it; the program knows the name so that it does not take it for a misspelt one.
    Script,
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Who acts on it, and its identity.
    pub reader: Reader,
    /// Its name in a settings file.
    pub key: &'static str,
    /// Its name in the environment.
    pub env: &'static str,
    /// What its text is read as.
    pub unit: Unit,
    /// What holds when it is not set, in words.
    pub default: &'static str,
    /// What it does, in one line.
    pub doc: &'static str,
}

/// All settings. An environment variable that begins with [`PREFIX`] and is not here is an error.
pub const SETTINGS: &[Setting] = &[
    Setting {
        reader: Reader::Program(Key::Model),
        key: "model",
        env: "COLI_MODEL",
        unit: Unit::Path,
        default: "the demo model",
        doc: "The model to run: a folder with a config.json and safetensors, or a GGUF file.",
    },
    Setting {
        reader: Reader::Program(Key::Demo),
        key: "demo",
        env: "COLI_DEMO",
        unit: Unit::Path,
        default: "the source tree's demo model, in a binary that was built in one",
        doc: "The demo model's folder, where there is no `demo` beside the executable.",
    },
    Setting {
        reader: Reader::Program(Key::PluginPath),
        key: "plugin_path",
        env: "COLI_PLUGIN_PATH",
        unit: Unit::PathList,
        default: "none",
        doc: "Folders searched for plugins before the installed ones.",
    },
    Setting {
        reader: Reader::Program(Key::Home),
        key: "home",
        env: "COLI_HOME",
        unit: Unit::Path,
        default: "the folder of the executable",
        doc: "Where `models`, `demo` and plugin libraries that lie beside the executable are looked for.",
    },
];

/// What the name of every environment variable of ours begins with.
pub const PREFIX: &str = "COLI_";

impl Setting {
    /// The row with this name in the environment.
    pub fn by_env(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.env == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn rows_are_complete_and_names_follow_the_key() {
        let mut seen = HashSet::new();
        for setting in SETTINGS {
            assert_eq!(setting.env, format!("{PREFIX}{}", setting.key.to_uppercase()));
            assert!(seen.insert(setting.key), "{} is there twice", setting.key);
            assert!(!setting.doc.is_empty() && !setting.default.is_empty() && !setting.unit.name().is_empty(), "{}", setting.key);
            assert_eq!(Setting::by_env(setting.env), Some(setting));
        }
    }
}
