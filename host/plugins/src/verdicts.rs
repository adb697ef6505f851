//! What became of libraries that were opened before: a small file in the person's cache folder.
//!
//! An entry holds for a path, a size and a time of change, and for this version of the host. The file is a convenience: one that cannot be
//! read counts as empty, one that cannot be written is left, and of two processes that write at once the later one wins.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

const FILE: &str = "plugins.json";
const HOST: &str = env!("CARGO_PKG_VERSION");
/// Entries that are kept; the oldest go first.
const ENTRIES_MAX: usize = 256;
const BYTES_MAX: u64 = 1 << 20;

/// A library file as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    path: String,
    size: u64,
    /// Nanoseconds since 1970.
    modified: u64,
}

/// What became of a library when it was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// It can be opened; whether it is a plugin that this host can use is found out then.
    Opens,
    /// It ended the process that opened it, in these words.
    Crashes(String),
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    library: Identity,
    verdict: Verdict,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Contents {
    host: String,
    entries: Vec<Entry>,
}

/// The memory, in a folder that need not exist; without a folder nothing is remembered.
#[derive(Debug, Clone)]
pub(crate) struct Verdicts(pub(crate) Option<PathBuf>);

impl Identity {
    /// `None` for what no entry can hold for: a file that is not there, or whose name is not text.
    pub(crate) fn of(library: &Path) -> Option<Self> {
        let path = std::path::absolute(library).ok()?.to_str()?.to_string();
        let facts = fs::metadata(library).ok()?;
        let age = facts.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(Self { path, size: facts.len(), modified: u64::try_from(age.as_nanos()).ok()? })
    }
}

impl Verdicts {
    /// The verdict on this very file.
    pub(crate) fn recall(&self, library: &Identity) -> Option<Verdict> {
        let entries = self.read().entries.into_iter();
        entries.rev().find(|entry| entry.library == *library).map(|entry| entry.verdict)
    }

    /// Remembers a verdict in the place of those on earlier files of the path.
    pub(crate) fn keep(&self, library: &Identity, verdict: Verdict) {
        let mut contents = self.read();
        contents.entries.retain(|entry| entry.library.path != library.path);
        contents.entries.push(Entry { library: library.clone(), verdict });
        let surplus = contents.entries.len().saturating_sub(ENTRIES_MAX);
        contents.entries.drain(..surplus);
        // See the module's comment: a full or read-only disk is no reason to refuse a plugin.
        let _ = self.write(&contents);
    }

    fn read(&self) -> Contents {
        let empty = || Contents { host: HOST.into(), entries: Vec::new() };
        let Some(path) = self.0.as_ref().map(|folder| folder.join(FILE)) else { return empty() };
        let mut text = String::new();
        let whole = File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text));
        let contents = whole.ok().and_then(|_| serde_json::from_str::<Contents>(&text).ok());
        contents.filter(|contents| contents.host == HOST).unwrap_or_else(empty)
    }

    /// By a file of another name, so that a reader finds the old list or the new one.
    fn write(&self, contents: &Contents) -> std::io::Result<()> {
        let Some(folder) = &self.0 else { return Ok(()) };
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer(&mut file, contents)?;
        file.flush()?;
        file.persist(folder.join(FILE))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crash() -> Verdict {
        Verdict::Crashes("signal 11".into())
    }

    #[test]
    fn a_verdict_holds_for_one_state_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let verdicts = Verdicts(Some(folder.path().join("not/yet")));
        let library = folder.path().join("libx.so");
        assert_eq!(Identity::of(&library), None);
        fs::write(&library, "one").unwrap();
        let first = Identity::of(&library).unwrap();
        assert_eq!(verdicts.recall(&first), None);
        verdicts.keep(&first, crash());
        assert_eq!(verdicts.recall(&first), Some(crash()));
        verdicts.keep(&first, Verdict::Opens);
        assert_eq!(verdicts.recall(&first), Some(Verdict::Opens), "the later verdict holds");

        let later = Identity { modified: first.modified + 1, ..first.clone() };
        let longer = Identity { size: 4, ..first.clone() };
        for changed in [&later, &longer] {
            assert_eq!(verdicts.recall(changed), None);
        }
        verdicts.keep(&later, crash());
        assert_eq!((verdicts.recall(&first), verdicts.recall(&later)), (None, Some(crash())), "one entry for each path");
    }

    #[test]
    fn the_list_does_not_grow_without_end() {
        let folder = tempfile::tempdir().unwrap();
        let verdicts = Verdicts(Some(folder.path().into()));
        let library = |number: usize| Identity { path: format!("/{number}"), size: 1, modified: 1 };
        (0..ENTRIES_MAX + 2).for_each(|number| verdicts.keep(&library(number), Verdict::Opens));
        assert_eq!(verdicts.read().entries.len(), ENTRIES_MAX);
        assert_eq!((verdicts.recall(&library(1)), verdicts.recall(&library(2))), (None, Some(Verdict::Opens)));
    }

    #[test]
    fn a_file_that_is_not_ours_counts_as_empty_and_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let verdicts = Verdicts(Some(folder.path().into()));
        let library = Identity { path: "/x".into(), size: 1, modified: 1 };
        for text in ["", "{", "[]", r#"{"host":"another","entries":[]}"#] {
            fs::write(folder.path().join(FILE), text).unwrap();
            assert_eq!(verdicts.recall(&library), None, "{text}");
            verdicts.keep(&library, crash());
            assert_eq!(verdicts.recall(&library), Some(crash()), "{text}");
        }
        let other_host = fs::read_to_string(folder.path().join(FILE)).unwrap().replace(HOST, "99.0.0");
        fs::write(folder.path().join(FILE), other_host).unwrap();
        assert_eq!(verdicts.recall(&library), None, "another host may not crash");
    }

    #[test]
    fn nowhere_to_write_is_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let library = Identity { path: "/x".into(), size: 1, modified: 1 };
        for verdicts in [Verdicts(None), Verdicts(Some(file.join("below a file")))] {
            verdicts.keep(&library, Verdict::Opens);
            assert_eq!(verdicts.recall(&library), None);
        }
    }
}
