//! The state file of an unfinished conversion: of what, into what. It says nothing of how far it is; the files do.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::time::UNIX_EPOCH;

use coli_base::{Error, Result, files};
use serde_json::{Value, json};

use super::{Conversion, Options};

/// Its name. A folder that has it is no finished model.
pub const STATE: &str = "coli-convert.json";
/// Key of the version in it, and of our note in the index of a finished folder.
pub(super) const MARK: &str = "coli.convert";

const VERSION: u64 = 1;
const BYTES_MAX: u64 = 64 << 20;

/// By what a file is known to be the same: its length, and when it was changed. Its bytes are too many to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) bytes: u64,
    /// Nanoseconds since 1970; 0 where the system does not say.
    modified: u64,
}

impl Identity {
    pub(super) fn of(path: &Path) -> Result<Self> {
        let facts = fs::metadata(path).map_err(|error| Error::of_file(&error, format!("`{}`: {error}", path.display())))?;
        let modified = facts.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = modified.and_then(|time| u64::try_from(time.as_nanos()).ok()).unwrap_or(0);
        Ok(Self { bytes: facts.len(), modified })
    }

    /// An error where the file is another one by now.
    pub(super) fn check(&self, path: &Path) -> Result<()> {
        match Self::of(path)? == *self {
            true => Ok(()),
            false => Err(Error::run(format!("`{}` was changed while it was converted", path.display()))),
        }
    }
}

/// What the state file of a conversion says.
pub(super) fn of(conversion: &Conversion) -> Value {
    let shards = conversion.shards.iter().map(|shard| (shard.name.display().to_string(), shard.identity));
    let sides = conversion.sides.iter().map(|side| (side.name.clone(), side.identity));
    let files: BTreeMap<String, [u64; 2]> =
        shards.chain(sides).map(|(name, identity)| (name, [identity.bytes, identity.modified])).collect();
    let Options { experts, dense } = conversion.options;
    // Another version of the program may encode otherwise: a folder is made by one.
    let program = env!("CARGO_PKG_VERSION");
    json!({MARK: VERSION, "program": program, "experts": experts.to_string(), "dense": dense.to_string(), "files": files})
}

/// The state file of a folder; `None` where it has none.
pub(super) fn read(dir: &Path) -> Result<Option<Value>> {
    let path = dir.join(STATE);
    let Some(bytes) = files::read_bounded(&path, BYTES_MAX)? else { return Ok(None) };
    let text = |error: serde_json::Error| Error::usage(format!("`{}` is not the state of a conversion: {error}", path.display()));
    serde_json::from_slice(&bytes).map(Some).map_err(text)
}

/// An error that says in what the conversion in the folder is another one.
pub(super) fn check(dir: &Path, found: &Value, wanted: &Value) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    let shown = dir.display();
    let differs = |key: &str| found.get(key) != wanted.get(key);
    let words = |key: &str| found.get(key).and_then(Value::as_str).unwrap_or("?").to_owned();
    let why = if differs(MARK) || differs("program") {
        format!("was begun by coli {}", words("program"))
    } else if differs("experts") || differs("dense") {
        format!("was begun with --experts {} --dense {}", words("experts"), words("dense"))
    } else {
        format!("is of another source, or one that was changed since: {}", first_difference(found, wanted))
    };
    Err(Error::usage(format!("the unfinished conversion in `{shown}` {why}; give another folder, or remove this one")))
}

fn first_difference(found: &Value, wanted: &Value) -> String {
    let files = |state: &Value| state.get("files").and_then(Value::as_object).cloned().unwrap_or_default();
    let (found, wanted) = (files(found), files(wanted));
    let differs = wanted.iter().find(|(name, identity)| found.get(*name) != Some(identity)).map(|(name, _)| name);
    let gone = found.keys().find(|name| !wanted.contains_key(*name));
    differs.or(gone).map_or("its files".into(), |name| format!("`{name}`"))
}

/// Locks the folder for this process, as long as the file stays open.
pub(super) fn lock(dir: &Path) -> Result<File> {
    let path = dir.join(STATE);
    let file = File::open(&path).map_err(|error| Error::run(format!("`{}`: {error}", path.display())))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::run(format!("another coli is converting into `{}` right now", dir.display()))),
        // A file system without locks: then nobody can know.
        Err(TryLockError::Error(_)) | Ok(()) => Ok(file),
    }
}
