//! What became of each candidate, as `coli plugins` and the log show it.

use std::fmt;

use serde::Serialize;

/// What became of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It can be used.
    Accepted,
    /// It cannot.
    Refused,
    /// Another one with its id was found first.
    Shadowed,
}

/// One candidate. What is unknown of a plugin whose manifest could not be read is `None` or empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listing {
    /// Its id.
    pub id: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The ABI it was built against.
    pub abi: Option<String>,
    /// What became of it.
    pub state: State,
    /// Why, in one line.
    pub reason: String,
    /// What put its folder on the list of those searched.
    pub origin: String,
    /// Its manifest.
    pub manifest: String,
    /// Its library, once looked up.
    pub library: Option<String>,
    /// `model_type`s that it serves.
    pub model_types: Vec<String>,
    /// GGUF architectures that it serves.
    pub gguf_architectures: Vec<String>,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Shadowed => "shadowed",
        })
    }
}

/// The line that the log has for a candidate.
impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.id, &self.version) {
            (Some(id), Some(version)) => write!(f, "plugin {id} {version} ({}, from {})", self.manifest, self.origin)?,
            _ => write!(f, "plugin {} (from {})", self.manifest, self.origin)?,
        }
        write!(f, " {}: {}", self.state, self.reason)
    }
}
