//! Finds what a command asks for: the model's folder and the plugins.

use std::path::{Path, PathBuf};

use coli_base::{Error, Result};
use coli_config::Environment;
use coli_plugins::{Folder, Host, Plugins, Request};

/// A model's folder, and who named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFolder {
    /// The folder.
    pub path: PathBuf,
    /// Whether it is the demo model, taken because none was named.
    pub demo: bool,
}

/// `--model`, else `COLI_MODEL`, else the demo model.
pub fn find_model(named: Option<&Path>, environment: &Environment) -> Result<ModelFolder> {
    if let Some(path) = named.or(environment.model.as_deref()) {
        return Ok(ModelFolder { path: path.into(), demo: false });
    }
    let home = environment.home_folder()?;
    let places = environment.demo_places(&home);
    match places.iter().find(|place| place.path.join("config.json").is_file()) {
        Some(place) => Ok(ModelFolder { path: place.path.clone(), demo: true }),
        None => {
            let tried: Vec<String> = places.iter().map(|place| place.path.display().to_string()).collect();
            Err(Error::refused(format!("no model was named and the demo model is not in {}; name one with --model DIR", tried.join(", "))))
        }
    }
}

/// Reads the manifests of every plugin folder.
pub fn discover_plugins(request: Option<&Request>, environment: &Environment) -> Result<Plugins> {
    let home = environment.home_folder()?;
    let places = environment.plugin_places(&home).into_iter();
    let folders: Vec<Folder> = places.map(|place| Folder { path: place.path, origin: place.origin.into() }).collect();
    let ops = super::op_ids();
    let ops: Vec<&str> = ops.iter().map(String::as_str).collect();
    Plugins::discover(request, &folders, Host { ops: &ops, home: &home })
}
