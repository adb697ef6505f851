//! Every setting, once: its names, what its value may be, what holds without it, and what it does.

use crate::value::Value;

/// A setting's identity in code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// The model to run.
    Model,
    /// The plugin that serves it.
    ModelPlugin,
    /// The device.
    Device,
    /// The arithmetic.
    Precision,
    /// Positions of the context.
    Ctx,
    /// Threads.
    Threads,
    /// Device memory.
    VramLimit,
    /// The most tokens to generate.
    Tokens,
    /// Temperature.
    Temp,
    /// Draw among the so many best.
    TopK,
    /// Draw among those that reach this sum.
    TopP,
    /// Draw among those within this share of the best.
    MinP,
    /// Lowers the scores of tokens that were there.
    RepeatPenalty,
    /// Key of the draws.
    Seed,
    /// Folders of plugins.
    PluginPath,
    /// The demo model's folder.
    Demo,
    /// What counts as the folder of the executable.
    Home,
    /// Vulkan's kernels.
    VkShaders,
    /// Vulkan's loader.
    VkLoader,
}

/// What a setting's value is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unit {
    /// A file or folder.
    Path,
    /// Folders, in the environment written as in `PATH`, in a file as an array of strings.
    PathList,
    /// A word or a name, which whoever acts on it judges.
    Text,
    /// A whole number, of what.
    Whole {
        /// The least.
        least: u64,
        /// The most.
        most: u64,
        /// What is counted; empty where the number is a name.
        of: &'static str,
    },
    /// A number in a range.
    Number {
        /// The least.
        least: f32,
        /// Whether the least itself is allowed.
        closed: bool,
        /// The most.
        most: f32,
    },
}

/// Who acts on a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// The program.
    Program(Key),
    /// Only the script around it; the program knows the name so that it does not take it for a misspelt one.
    Script,
}

/// What holds when nobody sets it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fallback {
    /// This number.
    Whole(u64),
    /// This number.
    Number(f32),
    /// This word.
    Text(&'static str),
    /// What these words say: it follows from other things.
    Words(&'static str),
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Who acts on it, and its identity.
    pub reader: Reader,
    /// Its name in a settings file.
    pub key: &'static str,
    /// Its name in the environment.
    pub env: &'static str,
    /// What its value is.
    pub unit: Unit,
    /// What holds when it is not set.
    pub fallback: Fallback,
    /// What it does, in one line.
    pub doc: &'static str,
}

/// What the name of every environment variable of ours begins with.
pub const PREFIX: &str = "COLI_";

const fn row(key: Key, names: (&'static str, &'static str), unit: Unit, fallback: Fallback, doc: &'static str) -> Setting {
    Setting { reader: Reader::Program(key), key: names.0, env: names.1, unit, fallback, doc }
}

const fn count(least: u64, of: &'static str) -> Unit {
    Unit::Whole { least, most: u32::MAX as u64, of }
}

const fn number(least: f32, closed: bool, most: f32) -> Unit {
    Unit::Number { least, closed, most }
}

/// All settings. An environment variable that begins with [`PREFIX`] and is not here is an error, and so is such a key of a file.
pub const SETTINGS: &[Setting] = &[
    row(
        Key::Model,
        ("model", "COLI_MODEL"),
        Unit::Path,
        Fallback::Words("the demo model"),
        "The model to run: a folder with config.json, tokenizer.json and *.safetensors.",
    ),
    row(
        Key::ModelPlugin,
        ("model_plugin", "COLI_MODEL_PLUGIN"),
        Unit::Text,
        Fallback::Words("the first that serves the model"),
        "The plugin that serves the model, by name or by the path of its manifest, folder or library.",
    ),
    row(Key::Device, ("device", "COLI_DEVICE"), Unit::Text, Fallback::Text("auto"), "auto, cpu, vulkan, a device's number or its name."),
    row(
        Key::Precision,
        ("precision", "COLI_PRECISION"),
        Unit::Text,
        Fallback::Text("auto"),
        "auto, exact (f32 arithmetic in one order) or fast.",
    ),
    row(
        Key::Ctx,
        ("ctx", "COLI_CTX"),
        count(1, "positions"),
        Fallback::Words("the model's, at most 4096"),
        "Positions of the context: prompt and generated tokens together.",
    ),
    row(
        Key::Threads,
        ("threads", "COLI_THREADS"),
        Unit::Whole { least: 1, most: 1024, of: "threads" },
        Fallback::Words("one for each processor"),
        "Threads of the CPU executor.",
    ),
    row(
        Key::VramLimit,
        ("vram_limit", "COLI_VRAM_LIMIT"),
        Unit::Whole { least: 1, most: 1 << 24, of: "MiB" },
        Fallback::Words("what is free"),
        "Memory of the device that is taken at most.",
    ),
    row(Key::Tokens, ("tokens", "COLI_TOKENS"), count(0, "tokens"), Fallback::Whole(256), "The most tokens to generate."),
    row(Key::Temp, ("temp", "COLI_TEMP"), number(0.0, true, 100.0), Fallback::Number(0.8), "Temperature; 0 takes the most probable token."),
    row(
        Key::TopK,
        ("top_k", "COLI_TOP_K"),
        count(0, "tokens"),
        Fallback::Whole(0),
        "Draw among the so many most probable tokens; 0 is all.",
    ),
    row(
        Key::TopP,
        ("top_p", "COLI_TOP_P"),
        number(0.0, false, 1.0),
        Fallback::Number(0.95),
        "Draw among the most probable tokens that together reach this probability; 1 is all.",
    ),
    row(
        Key::MinP,
        ("min_p", "COLI_MIN_P"),
        number(0.0, true, 1.0),
        Fallback::Number(0.0),
        "Draw among the tokens that are at least this share as probable as the best one; 0 is all.",
    ),
    row(
        Key::RepeatPenalty,
        ("repeat_penalty", "COLI_REPEAT_PENALTY"),
        number(0.0, false, 100.0),
        Fallback::Number(1.0),
        "Divides the positive scores of tokens that were there before and multiplies the negative ones; 1 is none.",
    ),
    row(
        Key::Seed,
        ("seed", "COLI_SEED"),
        Unit::Whole { least: 0, most: u64::MAX, of: "" },
        Fallback::Words("random, and printed"),
        "Key of the draws: the same seed gives the same text.",
    ),
    row(
        Key::PluginPath,
        ("plugin_path", "COLI_PLUGIN_PATH"),
        Unit::PathList,
        Fallback::Words("none"),
        "Folders searched for plugins before the installed ones.",
    ),
    row(
        Key::Demo,
        ("demo", "COLI_DEMO"),
        Unit::Path,
        Fallback::Words("the source tree's demo model, in a binary that was built in one"),
        "The demo model's folder, where there is no `demo` beside the executable.",
    ),
    row(
        Key::Home,
        ("home", "COLI_HOME"),
        Unit::Path,
        Fallback::Words("the folder of the executable"),
        "Where `models`, `demo`, `shaders` and plugin libraries that lie beside the executable are looked for.",
    ),
    row(
        Key::VkShaders,
        ("vk_shaders", "COLI_VK_SHADERS"),
        Unit::Path,
        Fallback::Words("`shaders` beside the executable, else those built in"),
        "Vulkan's kernels: a folder with kernels.bin, or such a file. They must be of the same sources as the program.",
    ),
    row(
        Key::VkLoader,
        ("vk_loader", "COLI_VK_LOADER"),
        Unit::Path,
        Fallback::Words("the system's"),
        "Vulkan's loader: the library itself, and no other is tried.",
    ),
];

impl Setting {
    /// The row with this name in the environment.
    pub fn by_env(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.env == name)
    }

    /// The row with this name in a file.
    pub fn by_key(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.key == name)
    }

    /// The row of a key.
    ///
    /// # Panics
    /// When the table lacks it, which a test rules out.
    pub fn of(key: Key) -> &'static Self {
        let row = SETTINGS.iter().find(|setting| setting.reader == Reader::Program(key));
        row.unwrap_or_else(|| panic!("no row for {key:?}"))
    }

    /// What holds when it is not set, in words.
    pub fn default_words(&self) -> String {
        match self.fallback {
            Fallback::Words(words) => words.into(),
            Fallback::Text(text) => text.into(),
            Fallback::Whole(number) => number.to_string(),
            Fallback::Number(number) => number.to_string(),
        }
    }

    /// The value that holds when it is not set, where that is a plain one.
    pub fn default_value(&self) -> Option<Value> {
        match self.fallback {
            Fallback::Words(_) => None,
            Fallback::Text(text) => Some(Value::Text(text.into())),
            Fallback::Whole(number) => Some(Value::Whole(number)),
            Fallback::Number(number) => Some(Value::Number(number)),
        }
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
            assert!(!setting.doc.is_empty() && !setting.default_words().is_empty() && !setting.unit.name().is_empty(), "{}", setting.key);
            assert_eq!(Setting::by_env(setting.env), Some(setting));
            assert_eq!(Setting::by_key(setting.key), Some(setting));
            let Reader::Program(key) = setting.reader else { continue };
            assert_eq!(Setting::of(key), setting, "a key stands in one row");
        }
    }

    #[test]
    fn a_default_is_in_its_own_range() {
        for setting in SETTINGS {
            let Some(value) = setting.default_value() else { continue };
            assert_eq!(setting.unit.parse(std::ffi::OsStr::new(&value.to_string())), Ok(value));
        }
    }
}
