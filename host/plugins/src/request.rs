//! What `--model-plugin` asks for: a plugin by its id, or by a path.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use coli_base::{Error, Result};

use crate::manifest::{MANIFEST_SUFFIX, Manifest};

/// An explicit choice of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// The plugin with this id.
    Name(String),
    /// A manifest, its folder, or a library with its manifest beside it.
    Path(PathBuf),
}

/// The files that a path request means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) manifest: PathBuf,
    /// The library, where it was the library that was asked for.
    pub(crate) library: Option<PathBuf>,
}

impl Request {
    /// Reads the option's text. A path has a separator in it, is `.` or `..`, or ends like a manifest or a library.
    pub fn parse(text: impl AsRef<OsStr>) -> Self {
        let text = text.as_ref();
        let lossy = text.to_string_lossy();
        let ends_like_a_file = [".toml", ".so", ".dylib", ".dll"].iter().any(|suffix| lossy.ends_with(suffix));
        if ends_like_a_file || lossy == "." || lossy == ".." || lossy.contains(std::path::is_separator) {
            Self::Path(text.into())
        } else {
            Self::Name(lossy.into_owned())
        }
    }

    /// An error about this request.
    pub(crate) fn refused(&self, why: impl fmt::Display) -> Error {
        Error::refused(format!("--model-plugin {self}: {why}"))
    }

    /// The files that a path means; `None` for a name.
    pub(crate) fn target(&self) -> Result<Option<Target>> {
        let Self::Path(path) = self else { return Ok(None) };
        let facts = std::fs::metadata(path).map_err(|error| self.refused(error))?;
        let name = path.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
        let target = if facts.is_dir() {
            Target { manifest: sole_manifest(path).map_err(|why| self.refused(why))?, library: None }
        } else if name.ends_with(MANIFEST_SUFFIX) {
            Target { manifest: path.clone(), library: None }
        } else if name.ends_with(".toml") {
            return Err(self.refused(format!("expected a file that ends in {MANIFEST_SUFFIX}")));
        } else {
            Target { manifest: manifest_of_library(path).map_err(|why| self.refused(why))?, library: Some(path.clone()) }
        };
        Ok(Some(target))
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The manifest of a folder: the only one, or of several the one named like the folder.
fn sole_manifest(folder: &Path) -> std::result::Result<PathBuf, String> {
    let manifests = manifests_in(folder)?;
    match manifests.as_slice() {
        [] => Err(format!("no file in this folder ends in {MANIFEST_SUFFIX}")),
        [only] => Ok(only.clone()),
        several => {
            // A path such as `.` has no name of its own.
            let whole = folder.canonicalize().map_err(|error| error.to_string())?;
            let own = whole.file_name().map(|name| format!("{}{MANIFEST_SUFFIX}", name.to_string_lossy()));
            let named = several.iter().find(|path| path.file_name().and_then(OsStr::to_str) == own.as_deref());
            named.cloned().ok_or_else(|| format!("{} files in this folder end in {MANIFEST_SUFFIX}; name one of them", several.len()))
        }
    }
}

/// The manifest beside a library that names it.
fn manifest_of_library(library: &Path) -> std::result::Result<PathBuf, String> {
    let folder = library.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut broken = None;
    for path in manifests_in(folder)? {
        match Manifest::read(&path) {
            Ok(manifest) if library.file_name() == Some(OsStr::new(&manifest.library_file())) => return Ok(path),
            Ok(_) => {}
            Err(error) => {
                broken.get_or_insert(error.text);
            }
        }
    }
    Err(match broken {
        Some(text) => format!("no readable manifest beside this library names it ({text})"),
        None => format!("no file beside this library ends in {MANIFEST_SUFFIX} and names it"),
    })
}

/// Manifests that lie directly in a folder, in the order of their names.
fn manifests_in(folder: &Path) -> std::result::Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(MANIFEST_SUFFIX)))
        .collect();
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paths_are_told_apart() {
        for name in ["olmoe", "olmoe-2", "Olmoe", "so", ""] {
            assert_eq!(Request::parse(name), Request::Name(name.into()));
        }
        for path in ["./olmoe", "a/b", "x.plugin.toml", "libx.so", "libx.dylib", "x.dll", ".", "..", "x.toml", "/"] {
            assert_eq!(Request::parse(path), Request::Path(path.into()));
        }
    }
}
