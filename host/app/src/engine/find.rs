//! Finds what a command asks for: the model's folder and the plugins.

use std::path::{Path, PathBuf};

use coli_base::{Error, Result};
use coli_config::{Environment, Key, Place};
use coli_plugins::{Folder, Host, Plugins, Request};

/// A model's folder or file, and who named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFolder {
    /// The folder, or a GGUF file.
    pub path: PathBuf,
    /// Whether it is the demo model, taken because none was named.
    pub demo: bool,
}

impl ModelFolder {
    /// The folder's own name, for people.
    pub fn name(&self) -> String {
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        // `.` has no name, and `DIR/..` another one's.
        let whole = std::fs::canonicalize(&self.path);
        whole.ok().as_deref().and_then(name).unwrap_or_else(|| self.path.display().to_string())
    }
}

/// `--model`, else what environment or settings file name, else the demo model.
pub fn find_model(named: Option<&Path>, environment: &Environment) -> Result<ModelFolder> {
    if let Some(path) = named.or(environment.values.path(Key::Model)) {
        if let Some((owner, name)) = published_name(path).filter(|_| path.symlink_metadata().is_err()) {
            return Err(Error::refused(how_to_fetch(owner, name)));
        }
        return Ok(ModelFolder { path: path.into(), demo: false });
    }
    let home = environment.home_folder()?;
    let places = environment.demo_places(&home);
    let has_model = |place: &&Place| place.path.join("config.json").is_file();
    // Whether it would be its turn or not: what somebody named is meant, and something else in its place would go unnoticed.
    if let Some(place) = places.iter().find(|place| place.named && !has_model(place)) {
        let what = if place.path.exists() { "has no config.json" } else { "does not exist" };
        return Err(Error::usage(format!("the demo model's folder `{}` {what}; it comes from {}", place.path.display(), place.origin)));
    }
    match places.iter().find(has_model) {
        Some(place) => Ok(ModelFolder { path: place.path.clone(), demo: true }),
        None => {
            let tried: Vec<String> = places.iter().map(|place| place.path.display().to_string()).collect();
            Err(Error::refused(format!("no model was named and the demo model is not in {}; name one with --model DIR", tried.join(", "))))
        }
    }
}

/// Owner and name, where a path reads like the name of a published model.
fn published_name(path: &Path) -> Option<(&str, &str)> {
    let (owner, name) = path.to_str()?.split_once('/')?;
    let is_word = |word: &str| {
        let first = word.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
        first && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    // A file that is missing is only that.
    let is_file = name.to_ascii_lowercase().ends_with(".gguf");
    (is_word(owner) && is_word(name) && !is_file).then_some((owner, name))
}

fn how_to_fetch(owner: &str, name: &str) -> String {
    format!(
        "there is no folder `{owner}/{name}`; if that is a published model, fetch it with: hf download {owner}/{name} --local-dir {name} \
         --include '*.json' --include '*.jinja' --include '*.safetensors' and give --model {name}; needed are config.json, tokenizer.json \
         and model*.safetensors, used where they are there: generation_config.json, tokenizer_config.json, chat_template.jinja and \
         model.safetensors.index.json"
    )
}

/// Reads the manifests of every plugin folder.
pub fn discover_plugins(request: Option<&Request>, environment: &Environment) -> Result<Plugins> {
    let home = environment.home_folder()?;
    let places = environment.plugin_places(&home).into_iter();
    let folders: Vec<Folder> = places.map(|place| Folder { path: place.path, origin: place.origin.into(), named: place.named }).collect();
    let ops = super::op_ids();
    let ops: Vec<&str> = ops.iter().map(String::as_str).collect();
    Plugins::discover(request, &folders, Host { ops: &ops, home: &home })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_published_models_are_told_from_paths() {
        for (path, expected) in [("org/Name-1.0_b", Some(("org", "Name-1.0_b"))), ("a/b", Some(("a", "b")))] {
            assert_eq!(published_name(Path::new(path)), expected);
        }
        for path in ["name", "./a/b", "/a/b", "a/b/c", "../b", "a/", "a/..", "a b/c", "~/x", "a/b.gguf", ""] {
            assert_eq!(published_name(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn a_folder_is_called_by_its_name() {
        let here = ModelFolder { path: ".".into(), demo: false };
        assert_eq!(Some(here.name()), std::env::current_dir().unwrap().file_name().map(|name| name.to_string_lossy().into_owned()));
        assert_eq!(ModelFolder { path: "no/such".into(), demo: false }.name(), "no/such");
    }
}
