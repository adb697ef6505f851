//! Opening a plugin's library and checking it against the contract and its manifest.
//!
//! The layout of everything that crosses the border is compared in both directions, since a library may be older or newer than the host
//! by fields at the end of the root module. Each comparison has globals of its own: with shared ones the outcome would depend on which
//! libraries were compared before. A library is never unloaded, so what it hands out is valid for the rest of the process.

use std::path::Path;

use abi_stable::StableAbi;
use abi_stable::abi_stability::abi_checking::{CheckingGlobals, check_layout_compatibility_with_globals};
use abi_stable::library::{LibraryError, lib_header_from_path};
use abi_stable::type_layout::TypeLayout;
use coli_base::{Error, Result};
use coli_plugin_api::abi::PluginModule_Ref;

use crate::image;
use crate::own_ops;
use crate::search::Found;
use crate::text::one_line;

/// How long the cause in a refusal may be.
const CAUSE_MAX: usize = 300;
/// How long each side of a difference may be: enough for the name and type of a field.
const SIDE_MAX: usize = 100;

/// A loaded library that has passed every check.
#[derive(Clone)]
pub struct Library {
    pub(crate) id: String,
    pub(crate) module: PluginModule_Ref,
}

impl Library {
    /// Loads a plugin's library. Loading one again gives the same one.
    pub fn load(found: &Found) -> Result<Self> {
        Self::try_load(found).map_err(|why| Error::refused(format!("plugin {}: {why}", found.manifest.id)))
    }

    /// [`Library::load`] with an error that leaves the plugin's id to the caller.
    pub(crate) fn try_load(found: &Found) -> std::result::Result<Self, String> {
        let in_library = |why: String| format!("library {} {why}", found.library.display());
        // The system's loader searches its own folders for a name without a separator.
        let path = std::path::absolute(&found.library).map_err(|error| in_library(format!("cannot be found: {error}")))?;
        let module = open(&path).map_err(in_library)?;
        check_module(&module, found).map_err(in_library)?;
        let library = Self { id: found.manifest.id.clone(), module };
        own_ops::check_offered(&library, &found.manifest).map_err(in_library)?;
        Ok(library)
    }
}

#[allow(unsafe_code)]
fn open(path: &Path) -> std::result::Result<PluginModule_Ref, String> {
    image::check(path)?;
    resolve_now(path)?;
    let header = lib_header_from_path(path).map_err(|error| cause(&error))?;
    let layout = header.layout().ok_or("does not state the layout of what it exports")?;
    compare(PluginModule_Ref::LAYOUT, layout)?;
    // SAFETY: the layout that the header states for its root module has just been compared with that of `PluginModule_Ref`: they agree
    // but for optional fields at the end, whose accessors look up whether the field is there. What the module refers to stays mapped, as
    // `lib_header_from_path` never unloads a library.
    let module = unsafe { header.unchecked_layout::<PluginModule_Ref>() };
    module.map_err(|error| format!("does not start: {}", one_line(&error.to_string(), CAUSE_MAX)))
}

/// Opens the library with every symbol resolved at once, and keeps it open. The opening that follows would leave missing functions to
/// their first call, which ends the process.
#[cfg(unix)]
#[allow(unsafe_code)]
fn resolve_now(path: &Path) -> std::result::Result<(), String> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    // SAFETY: opening runs the library's initialisers. A plugin is native code that runs with this process's rights by decision of the
    // person who installed it; nothing here guards against malice. The file was checked to be a whole image for this machine.
    let opened = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
    // Forgotten, not dropped: a library is never unloaded.
    opened.map(std::mem::forget).map_err(|error| {
        // What the loader said, a missing function by its name, is behind the error's own text.
        let said = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        format!("cannot be opened: {}", one_line(&said, CAUSE_MAX))
    })
}

#[cfg(not(unix))]
fn resolve_now(_: &Path) -> std::result::Result<(), String> {
    Ok(())
}

/// Accepts a layout that is ours, ours with fewer fields at the end of the root module, or ours with more.
fn compare(host: &'static TypeLayout, plugin: &'static TypeLayout) -> std::result::Result<(), String> {
    let Err(difference) = check_layout_compatibility_with_globals(host, plugin, &CheckingGlobals::new()) else { return Ok(()) };
    if check_layout_compatibility_with_globals(plugin, host, &CheckingGlobals::new()).is_ok() {
        return Ok(());
    }
    Err(format!("was built with another layout of the plugin ABI: {}", point(&difference.to_string())))
}

/// The point of the layout checker's text, which describes both layouts in full before it comes to it, in its last block: `Error:`, what
/// is wrong, and both sides of it at length.
fn point(text: &str) -> String {
    let last = text.rsplit("Error:").next().unwrap_or_default();
    let sides = last.split_once("Expected:").and_then(|(what, sides)| Some((what, sides.split_once("Found:")?)));
    let short = |side: &str| one_line(side, SIDE_MAX);
    match sides {
        Some((what, (expected, found))) => format!("{}: expected {}, found {}", short(what), short(expected), short(found)),
        None => one_line(last, CAUSE_MAX),
    }
}

/// What only the module itself can say.
fn check_module(module: &PluginModule_Ref, found: &Found) -> std::result::Result<(), String> {
    let manifest = &found.manifest;
    if !module.panic_unwind() {
        return Err("was built with panic = \"abort\": a mistake in it would end this process; build it with panic = \"unwind\"".into());
    }
    let facts = [
        ("ABI major version", module.abi_major().to_string(), manifest.abi.major.to_string()),
        ("ABI minor version", module.abi_minor().to_string(), manifest.abi.minor.to_string()),
        ("id", module.id().to_string(), manifest.id.clone()),
        ("version", module.version().to_string(), manifest.version.clone()),
    ];
    match facts.into_iter().find(|(_, library, manifest)| library != manifest) {
        None => Ok(()),
        Some((what, library, manifest)) => Err(format!("states {what} {}, and its manifest states {manifest}", one_line(&library, 64))),
    }
}

/// Why a library cannot be opened, in a few words.
fn cause(error: &LibraryError) -> String {
    match error {
        LibraryError::OpenError { err, .. } => format!("cannot be opened: {}", one_line(&err.to_string(), CAUSE_MAX)),
        LibraryError::GetSymbolError { .. } => "is not a plugin: it exports no plugin module".into(),
        LibraryError::InvalidAbiHeader(found) => {
            format!("was built with an abi_stable of ABI {}.{}, which is not this host's", found.abi_major, found.abi_minor)
        }
        other => format!("cannot be used: {}", one_line(&other.to_string(), CAUSE_MAX)),
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
