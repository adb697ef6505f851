//! The target folder: taken, filled, finished.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use coli_base::units::Bytes;
use coli_base::{Error, Result, files};
use serde_json::{Value, json};

use super::layout::Shard;
use super::side::INDEX;
use super::state::{self, MARK, STATE};
use super::{Conversion, disk, shard};

const INDEX_BYTES_MAX: u64 = 256 << 20;
/// Room for folders, state and what file systems round up.
const SPARE_BYTES: u64 = 1 << 20;

/// What a conversion tells of.
#[derive(Debug)]
pub enum Event<'a> {
    /// Bytes read and read back so far, and all of them.
    Advanced {
        /// So far.
        done: u64,
        /// All.
        total: u64,
    },
    /// A file is finished.
    Wrote {
        /// Its name.
        name: &'a Path,
        /// Its bytes.
        bytes: u64,
    },
}

/// A target folder that is locked, and what it lacks.
#[derive(Debug)]
pub struct Folder<'a> {
    conversion: &'a Conversion,
    dir: PathBuf,
    /// Holds the lock. Closed before the file is removed.
    lock: File,
    /// Files that were finished before.
    found: Vec<bool>,
    free: Option<u64>,
}

/// What lies under the target's name.
enum Target {
    /// Nothing, or an empty folder.
    New,
    Begun,
}

pub(super) fn open<'a>(conversion: &'a Conversion, to: &Path) -> Result<Folder<'a>> {
    let wanted = state::of(conversion);
    let target = look(to)?;
    let begun = matches!(target, Target::Begun);
    if begun {
        check(to, &wanted)?;
    } else {
        // Before anything is made; an empty folder may be a file system of its own.
        check_room(if to.is_dir() { to } else { parent(to)? }, conversion.bytes().saturating_add(conversion.index_room()))?;
        make(to, &wanted)?;
    }
    let lock = state::lock(to)?;
    // Whoever had the lock before may have finished meanwhile.
    check(to, &wanted)?;
    clear(to)?;
    let mut found = Vec::new();
    for shard in &conversion.shards {
        found.push(is_finished(&to.join(&shard.name), shard)?);
        let partial = disk::partial(&to.join(&shard.name));
        disk::remove(&partial).map_err(|error| disk::failed(&partial, &error))?;
    }
    let missing = conversion.shards.iter().zip(&found).filter(|(_, found)| !**found).map(|(shard, _)| shard.bytes);
    let sides = conversion.sides.iter().filter(|side| !to.join(&side.name).exists()).map(|side| side.identity.bytes);
    let free = check_room(to, missing.chain(sides).fold(conversion.index_room(), u64::saturating_add))?;
    Ok(Folder { conversion, dir: to.into(), lock, found, free })
}

/// The folder that the target's folder is, or will be, in.
fn parent(to: &Path) -> Result<&Path> {
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match parent.is_dir() {
        true => Ok(parent),
        false => Err(Error::usage(format!("folder `{}` does not exist", parent.display()))),
    }
}

fn look(to: &Path) -> Result<Target> {
    let usage = |what: &str| Error::usage(format!("`{}` {what}; give a folder that does not exist yet", to.display()));
    match fs::metadata(to) {
        Err(error) if error.kind() == ErrorKind::NotFound && to.symlink_metadata().is_err() => return Ok(Target::New),
        Err(error) => return Err(usage(&format!("cannot be looked at: {error}"))),
        Ok(facts) if !facts.is_dir() => return Err(usage("is not a folder")),
        Ok(_) => {}
    }
    if to.join(STATE).symlink_metadata().is_ok() {
        return Ok(Target::Begun);
    }
    if let Some(mark) = finished(to) {
        let words = |key: &str| mark.get(key).and_then(Value::as_str).unwrap_or("?").to_owned();
        let (experts, dense) = (words("experts"), words("dense"));
        return Err(usage(&format!("is a finished conversion, with --experts {experts} --dense {dense}: it is a model to run")));
    }
    let mut entries = fs::read_dir(to).map_err(|error| usage(&format!("cannot be listed: {error}")))?;
    match entries.all(|entry| entry.is_ok_and(|entry| is_state_to_be(&entry.file_name()))) {
        true => Ok(Target::New),
        false => Err(usage("exists and is no unfinished conversion")),
    }
}

/// The temporary name of the state file: each process has its own, since nothing is locked before that file is there.
fn state_to_be(to: &Path) -> PathBuf {
    disk::partial(&to.join(format!("{STATE}.{}", std::process::id())))
}

/// Whether a name is such a one, which a kill may leave.
fn is_state_to_be(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(STATE) && name.ends_with(disk::PARTIAL))
}

/// What the index of a finished conversion says of it.
fn finished(dir: &Path) -> Option<Value> {
    let bytes = files::read_bounded(&dir.join(INDEX), INDEX_BYTES_MAX).ok()??;
    let index: Value = serde_json::from_slice(&bytes).ok()?;
    index.get("metadata")?.get(MARK).cloned()
}

fn check(to: &Path, wanted: &Value) -> Result<()> {
    let gone = || Error::usage(format!("the conversion into `{}` was finished or removed by another process", to.display()));
    let found = state::read(to)?.ok_or_else(gone)?;
    state::check(to, &found, wanted)
}

/// Makes the folder and its state file.
fn make(to: &Path, wanted: &Value) -> Result<()> {
    match fs::create_dir(to) {
        // Somebody made it since it was looked at, and may have finished a conversion in it.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => match look(to)? {
            Target::New => {}
            Target::Begun => return Ok(()),
        },
        Err(error) => return Err(Error::run(format!("making folder `{}`: {error}", to.display()))),
        Ok(()) => {}
    }
    disk::write(&to.join(STATE), &state_to_be(to), wanted.to_string().as_bytes())?;
    disk::settle_folder(to.parent().unwrap_or(to));
    Ok(())
}

/// Removes what kills before there was a state file left.
fn clear(to: &Path) -> Result<()> {
    let fail = |error: io::Error| Error::run(format!("`{}`: {error}", to.display()));
    for entry in fs::read_dir(to).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        if is_state_to_be(&entry.file_name()) {
            disk::remove(&entry.path()).map_err(fail)?;
        }
    }
    Ok(())
}

/// What is free, which has to be enough.
pub(super) fn check_room(dir: &Path, needed: u64) -> Result<Option<u64>> {
    let free = disk::free(dir);
    let needed = needed.saturating_add(SPARE_BYTES);
    match free {
        Some(free) if free < needed => {
            let (shown, free, lacking) = (dir.display(), Bytes(free), Bytes(needed - free));
            let needed = Bytes(needed);
            Err(Error::run(format!(
                "not enough room in `{shown}`: {needed} are needed, {free} are free; nothing was written or lost: free {lacking} more, or \
                 give another folder"
            )))
        }
        free => Ok(free),
    }
}

/// Whether a file is there; it then is one of this conversion's, which its header tells, and is whole, which its name tells.
fn is_finished(path: &Path, shard: &Shard) -> Result<bool> {
    let fail = |error: io::Error| Error::run(format!("`{}`: {error}", path.display()));
    let facts = match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        facts => facts.map_err(fail)?,
    };
    let mut header = vec![0; shard.header.len()];
    let same = facts.is_file() && facts.len() == shard.bytes && {
        File::open(path).and_then(|mut file| file.read_exact(&mut header)).map_err(fail)?;
        header == shard.header
    };
    match same {
        true => Ok(true),
        false => Err(Error::usage(format!("`{}` is not what this conversion writes there; give another folder", path.display()))),
    }
}

impl Folder<'_> {
    /// Files that were finished before.
    pub fn found(&self) -> usize {
        self.found.iter().filter(|found| **found).count()
    }

    /// Bytes that are free, where the system says.
    pub fn free(&self) -> Option<u64> {
        self.free
    }

    /// Writes what is missing. An error of `hear` ends the work; what is finished stays.
    pub fn run(self, hear: &mut dyn FnMut(Event<'_>) -> Result<()>) -> Result<()> {
        let shards = || self.conversion.shards.iter().zip(&self.found);
        let work = |shard: &Shard| shard.before.saturating_add(shard.bytes);
        let total = shards().map(|(shard, _)| work(shard)).fold(0, u64::saturating_add);
        let mut done = shards().filter(|(_, found)| **found).map(|(shard, _)| work(shard)).fold(0, u64::saturating_add);
        hear(Event::Advanced { done, total })?;
        for (shard, _) in shards().filter(|(_, found)| !**found) {
            self.shard(shard, &mut |bytes| {
                done += bytes;
                hear(Event::Advanced { done: done.min(total), total })
            })?;
            hear(Event::Wrote { name: &shard.name, bytes: shard.bytes })?;
        }
        self.finish()
    }

    fn shard(&self, shard: &Shard, advance: shard::Advance<'_>) -> Result<()> {
        let path = self.dir.join(&shard.name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| disk::failed(folder, &error))?;
        }
        let partial = disk::partial(&path);
        let digests = shard::write(shard, &partial, advance);
        let verified = digests.and_then(|digests| shard::verify(shard, &partial, &digests, advance));
        if let Err(error) = verified {
            // It is removed at the next start where it cannot be now.
            let _ = disk::remove(&partial);
            return Err(error);
        }
        disk::publish(&partial, &path)
    }

    /// The small files, `config.json` last, and the end of the state file.
    fn finish(self) -> Result<()> {
        let (sides, from) = (&self.conversion.sides, &self.conversion.from);
        let (config, others): (Vec<_>, Vec<_>) = sides.iter().partition(|side| side.name == super::side::CONFIG);
        others.iter().try_for_each(|side| side.copy(from, &self.dir))?;
        self.index()?;
        config.iter().try_for_each(|side| side.copy(from, &self.dir))?;
        drop(self.lock);
        let state = self.dir.join(STATE);
        disk::remove(&state).map_err(|error| disk::failed(&state, &error))?;
        disk::settle_folder(&self.dir);
        Ok(())
    }

    fn index(&self) -> Result<()> {
        let path = self.dir.join(INDEX);
        let mut map = BTreeMap::new();
        for shard in &self.conversion.shards {
            let parts: Vec<_> = shard.name.components().map(|part| part.as_os_str().to_string_lossy()).collect();
            let name = parts.join("/");
            map.extend(shard.names.iter().map(|tensor| (tensor.clone(), name.clone())));
        }
        let total: u64 = self.conversion.shards.iter().map(|shard| shard.bytes - shard.header.len() as u64).sum();
        let options = self.conversion.options;
        let mark = json!({"experts": options.experts.to_string(), "dense": options.dense.to_string()});
        let index = format!("{:#}\n", json!({"metadata": {"total_size": total, MARK: mark}, "weight_map": map}));
        match files::read_bounded(&path, INDEX_BYTES_MAX)? {
            Some(bytes) if bytes == index.as_bytes() => Ok(()),
            Some(_) => Err(Error::run(format!("`{}` is not what this conversion writes; nothing was overwritten", path.display()))),
            None => disk::write(&path, &disk::partial(&path), index.as_bytes()),
        }
    }
}
