//! Finding plugins: which manifests there are, which of them this host can serve, and which one is for a model.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use coli_base::{Error, Result};
use coli_plugin_api::abi::{ABI_MAJOR, ABI_VERSION};

use crate::listing::{Listing, State};
use crate::load::Library;
use crate::manifest::{MANIFEST_SUFFIX, Manifest};
use crate::request::Request;
use crate::scan::Checker;
use crate::text::one_line;

/// A folder to search, one level deep: a plugin is `<folder>/<name>/<name>.plugin.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// The folder.
    pub path: PathBuf,
    /// What put it on the list, for messages.
    pub origin: String,
    /// Whether a person named it. Such a folder must be there; of the others each may be missing.
    pub named: bool,
}

/// What a plugin may count on.
#[derive(Debug, Clone, Copy)]
pub struct Host<'a> {
    /// Every op of this host, as `name@version`.
    pub ops: &'a [&'a str],
    /// The second place where libraries are looked for: the executable's folder.
    pub home: &'a Path,
}

/// What decides which plugin a model needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelKind<'a> {
    /// `model_type` of a `config.json`.
    ModelType(&'a str),
    /// `general.architecture` of a GGUF file.
    GgufArchitecture(&'a str),
}

/// A plugin whose manifest was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its manifest.
    pub manifest: Manifest,
    /// Where that lies.
    pub manifest_path: PathBuf,
    /// Its library.
    pub library: PathBuf,
    /// What put its folder on the list.
    pub origin: String,
}

/// The plugin for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection<'a> {
    /// The plugin.
    pub plugin: &'a Found,
    /// A line for the log, where there was more than one.
    pub note: Option<String>,
}

/// Every candidate, in search order.
#[derive(Debug)]
pub struct Plugins {
    request: Option<Request>,
    candidates: Vec<Candidate>,
    folders: Vec<Folder>,
    /// What is wrong with the first folder that was named and cannot be searched.
    lacking: Option<Error>,
    checker: Option<Checker>,
}

#[derive(Debug)]
struct Candidate {
    manifest_path: PathBuf,
    origin: String,
    outcome: Outcome,
}

#[derive(Debug)]
enum Outcome {
    Accepted(Found),
    Refused { manifest: Option<Manifest>, library: Option<PathBuf>, reason: String },
    Shadowed { manifest: Manifest, by: PathBuf },
}

impl Plugins {
    /// Reads the manifests of the request, when it is a path, and then of the folders in order. Of each id the first one found counts, be
    /// it accepted or refused, so that what runs does not change behind a refusal. An error is only about the request.
    pub fn discover(request: Option<&Request>, folders: &[Folder], host: Host<'_>) -> Result<Self> {
        let (request_kept, folders_kept) = (request.cloned(), folders.to_vec());
        let mut plugins = Self { request: request_kept, candidates: Vec::new(), folders: folders_kept, lacking: None, checker: None };
        // One manifest may be reached by several folders: the build's own are often named by the environment as well.
        let mut seen = HashSet::new();
        if let Some((request, target)) = request.and_then(|request| Some((request, request.target().transpose()?))) {
            let target = target?;
            Manifest::read(&target.manifest).map_err(|error| request.refused(error))?;
            seen.insert(identity(&target.manifest));
            plugins.consider(target.manifest, "--model-plugin", target.library, host);
        }
        for folder in folders {
            for manifest_path in plugins.scan(folder) {
                if seen.insert(identity(&manifest_path)) {
                    plugins.consider(manifest_path, &folder.origin, None, host);
                }
            }
        }
        Ok(plugins)
    }

    /// The plugin for a model: the requested one if it serves the model, else the first that does. An error where a folder that was named
    /// cannot be searched: the plugin that is meant may be there, and another one should not take its place.
    pub fn select(&self, kind: ModelKind<'_>) -> Result<Selection<'_>> {
        if let Some(error) = &self.lacking {
            return Err(error.clone());
        }
        if let Some(plugin) = self.requested()? {
            return match kind.served_by(&plugin.manifest) {
                true => Ok(Selection { plugin, note: None }),
                false => Err(Error::refused(format!(
                    "--model-plugin {}: this plugin serves {}, and the model is {}; give a model that it serves with --model",
                    plugin.manifest.id,
                    serves(&plugin.manifest),
                    kind.words()
                ))),
            };
        }
        let mut serving = self.accepted().filter(|found| kind.served_by(&found.manifest));
        let Some(plugin) = serving.next() else { return Err(self.nobody_serves(kind)) };
        let others: Vec<&str> = serving.map(|found| found.manifest.id.as_str()).collect();
        let note = (!others.is_empty()).then(|| {
            let (id, others) = (&plugin.manifest.id, others.join(", "));
            format!("plugin {id} runs {}: it was found before {others}, whose manifest claims it as well", kind.words())
        });
        Ok(Selection { plugin, note })
    }

    /// The plugin that was asked for by name or path; `None` when none was.
    pub fn requested(&self) -> Result<Option<&Found>> {
        let Some(request) = &self.request else { return Ok(None) };
        let candidate = match request {
            // A path's candidate was considered first.
            Request::Path(_) => self.candidates.first(),
            Request::Name(name) => self.candidates.iter().find(|candidate| candidate.id() == Some(name)),
        };
        match candidate.map(|candidate| (&candidate.outcome, candidate.manifest_path.display())) {
            Some((Outcome::Accepted(found), _)) => Ok(Some(found)),
            Some((Outcome::Refused { reason, .. }, path)) => Err(request.refused(format!("{path}: {reason}"))),
            // The first of an id is never shadowed.
            Some((Outcome::Shadowed { .. }, _)) | None => Err(request.refused(format!("no such plugin; {}", self.known()))),
        }
    }

    /// Has libraries opened in a child process, before or in the place of this one.
    pub fn check_apart(&mut self, checker: Checker) {
        self.checker = Some(checker);
    }

    /// Loads a plugin's library, in a child process first where there is a checker.
    pub fn load(&self, found: &Found) -> Result<Library> {
        if let Some(checker) = &self.checker {
            checker.check(found).map_err(|error| error.within(format_args!("plugin {}", found.manifest.id)))?;
        }
        Library::load(found)
    }

    /// Opens every accepted plugin's library and refuses those that do not load. With a checker none is opened in this process.
    pub fn verify(&mut self) {
        for candidate in &mut self.candidates {
            let Outcome::Accepted(found) = &candidate.outcome else { continue };
            let verdict = match &self.checker {
                Some(checker) => checker.check(found).map_err(|error| error.text),
                None => Library::try_load(found).map(|_| ()),
            };
            if let Err(reason) = verdict {
                let (manifest, library) = (Some(found.manifest.clone()), Some(found.library.clone()));
                candidate.outcome = Outcome::Refused { manifest, library, reason };
            }
        }
    }

    /// What became of each candidate, in search order; a folder that cannot be searched is one as well.
    pub fn listings(&self) -> Vec<Listing> {
        self.candidates.iter().map(Candidate::listing).collect()
    }

    /// A line for each candidate.
    pub fn log_lines(&self) -> Vec<String> {
        self.listings().iter().map(Listing::to_string).collect()
    }

    fn accepted(&self) -> impl Iterator<Item = &Found> {
        self.candidates.iter().filter_map(|candidate| match &candidate.outcome {
            Outcome::Accepted(found) => Some(found),
            _ => None,
        })
    }

    fn consider(&mut self, manifest_path: PathBuf, origin: &str, library: Option<PathBuf>, host: Host<'_>) {
        let outcome = match Manifest::try_read(&manifest_path) {
            Err(reason) => Outcome::Refused { manifest: None, library: None, reason },
            Ok(manifest) => match self.candidates.iter().find(|earlier| earlier.id() == Some(&manifest.id)) {
                Some(earlier) => Outcome::Shadowed { by: earlier.manifest_path.clone(), manifest },
                None => judge(manifest, &manifest_path, origin, library, host),
            },
        };
        self.candidates.push(Candidate { manifest_path, origin: origin.into(), outcome });
    }

    /// The manifests of a folder in the order of their names.
    fn scan(&mut self, folder: &Folder) -> Vec<PathBuf> {
        let names = std::fs::read_dir(&folder.path).and_then(|entries| {
            let mut names = entries.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<Vec<OsString>>>()?;
            names.sort();
            Ok(names)
        });
        match names {
            Ok(names) => names.into_iter().filter_map(|name| manifest_of(&folder.path, name)).collect(),
            Err(error) => {
                self.lack(folder, &error);
                Vec::new()
            }
        }
    }

    /// Keeps a folder that cannot be searched, unless it is one that may be missing.
    fn lack(&mut self, folder: &Folder, error: &std::io::Error) {
        let missing = error.kind() == ErrorKind::NotFound;
        if missing && !folder.named {
            return;
        }
        let why = if missing { "does not exist".to_string() } else { format!("cannot be searched: {error}") };
        let (path, origin) = (folder.path.display(), &folder.origin);
        if folder.named && self.lacking.is_none() {
            self.lacking = Some(Error::usage(format!("plugin folder `{path}` {why}; it comes from {origin}, correct it there")));
        }
        let outcome = Outcome::Refused { manifest: None, library: None, reason: format!("plugin folder {path} {why}") };
        self.candidates.push(Candidate { manifest_path: folder.path.clone(), origin: origin.clone(), outcome });
    }

    /// Which plugins there are, for an error about one that is not.
    fn known(&self) -> String {
        let ids: Vec<&str> = self.accepted().map(|found| found.manifest.id.as_str()).collect();
        if !ids.is_empty() {
            return format!("known are {}", ids.join(", "));
        }
        let folders: Vec<String> = self.folders.iter().map(|folder| folder.path.display().to_string()).collect();
        format!("no usable plugin was found in {}", if folders.is_empty() { "any folder".into() } else { folders.join(", ") })
    }

    fn nobody_serves(&self, kind: ModelKind<'_>) -> Error {
        let would = self.candidates.iter().find_map(|candidate| match &candidate.outcome {
            Outcome::Refused { manifest: Some(manifest), reason, .. } if kind.served_by(manifest) => {
                Some(format!("; plugin {} would serve it but is refused: {reason}", manifest.id))
            }
            _ => None,
        });
        let served: Vec<String> =
            self.accepted().map(|found| format!("{} by plugin {}", serves(&found.manifest), found.manifest.id)).collect();
        let served = if served.is_empty() { self.known() } else { format!("served are {}", served.join("; ")) };
        Error::refused(format!("no plugin serves {}{}; {served}", kind.words(), would.unwrap_or_default()))
    }
}

/// The manifest of an entry of a folder; `None` where it is no plugin. What cannot be looked at counts as one, and so does a link that
/// leads nowhere: reading it gives the reason of its refusal.
fn manifest_of(folder: &Path, name: OsString) -> Option<PathBuf> {
    let entry = folder.join(&name);
    let mut file = name;
    file.push(MANIFEST_SUFFIX);
    let manifest = entry.join(file);
    let there = match manifest.symlink_metadata().map_err(|error| error.kind()) {
        Ok(_) => true,
        Err(ErrorKind::NotFound) => entry.is_symlink() && !entry.exists(),
        Err(ErrorKind::NotADirectory | ErrorKind::InvalidFilename) => false,
        Err(_) => true,
    };
    there.then_some(manifest)
}

/// Compares a manifest with the host, before its library is opened.
fn judge(manifest: Manifest, manifest_path: &Path, origin: &str, library: Option<PathBuf>, host: Host<'_>) -> Outcome {
    let looked_up = check_abi(&manifest)
        .and_then(|()| check_ops(&manifest, host.ops))
        .and_then(|()| library.map_or_else(|| find_library(&manifest, manifest_path, host.home), Ok));
    match looked_up {
        Ok(library) => Outcome::Accepted(Found { manifest, manifest_path: manifest_path.into(), library, origin: origin.into() }),
        Err(reason) => Outcome::Refused { reason, manifest: Some(manifest), library: None },
    }
}

fn check_abi(manifest: &Manifest) -> std::result::Result<(), String> {
    match manifest.abi.major {
        ABI_MAJOR => Ok(()),
        _ => Err(format!("it was built against ABI {}, and this host has ABI {ABI_VERSION}", manifest.abi)),
    }
}

fn check_ops(manifest: &Manifest, ops: &[&str]) -> std::result::Result<(), String> {
    let Some(missing) = manifest.host_ops().find(|op| !ops.contains(&op.as_str())) else { return Ok(()) };
    let name = missing.split('@').next().unwrap_or_default();
    let versions: Vec<&str> = ops.iter().copied().filter(|op| op.split('@').next() == Some(name)).collect();
    let instead = if versions.is_empty() { String::new() } else { format!(", only {}", versions.join(", ")) };
    Err(format!("it needs op {missing}, which this host does not have{instead}"))
}

fn find_library(manifest: &Manifest, manifest_path: &Path, home: &Path) -> std::result::Result<PathBuf, String> {
    let file = manifest.library_file();
    let beside = manifest_path.parent().unwrap_or(Path::new("")).join(&file);
    let at_home = home.join(&file);
    match [&beside, &at_home].into_iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.clone()),
        None => Err(format!("its library is neither {} nor {}", beside.display(), at_home.display())),
    }
}

/// What makes two paths the same manifest.
fn identity(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.into())
}

/// What a plugin serves, in words.
fn serves(manifest: &Manifest) -> String {
    let part = |what: &str, names: &[String]| (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")));
    let parts = [part("model types", &manifest.model_types), part("GGUF architectures", &manifest.gguf_architectures)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

impl ModelKind<'_> {
    fn served_by(self, manifest: &Manifest) -> bool {
        match self {
            Self::ModelType(name) => manifest.model_types.iter().any(|served| served == name),
            Self::GgufArchitecture(name) => manifest.gguf_architectures.iter().any(|served| served == name),
        }
    }

    /// The name comes from a model's file, so it is cleaned.
    fn words(self) -> String {
        match self {
            Self::ModelType(name) => format!("model type `{}`", one_line(name, 64)),
            Self::GgufArchitecture(name) => format!("GGUF architecture `{}`", one_line(name, 64)),
        }
    }
}

impl Candidate {
    fn manifest(&self) -> Option<&Manifest> {
        match &self.outcome {
            Outcome::Accepted(found) => Some(&found.manifest),
            Outcome::Refused { manifest, .. } => manifest.as_ref(),
            Outcome::Shadowed { manifest, .. } => Some(manifest),
        }
    }

    fn id(&self) -> Option<&String> {
        self.manifest().map(|manifest| &manifest.id)
    }

    fn listing(&self) -> Listing {
        let (state, reason, library) = match &self.outcome {
            Outcome::Accepted(found) => (State::Accepted, format!("serves {}", serves(&found.manifest)), Some(&found.library)),
            Outcome::Refused { library, reason, .. } => (State::Refused, reason.clone(), library.as_ref()),
            Outcome::Shadowed { by, .. } => (State::Shadowed, format!("{} was found first", by.display()), None),
        };
        let manifest = self.manifest();
        Listing {
            id: self.id().cloned(),
            version: manifest.map(|manifest| manifest.version.clone()),
            abi: manifest.map(|manifest| manifest.abi.to_string()),
            state,
            reason,
            origin: self.origin.clone(),
            manifest: self.manifest_path.display().to_string(),
            library: library.map(|path| path.display().to_string()),
            model_types: manifest.map(|manifest| manifest.model_types.clone()).unwrap_or_default(),
            gguf_architectures: manifest.map(|manifest| manifest.gguf_architectures.clone()).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
