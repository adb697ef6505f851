//! What the file system is asked: room, and that what was written is on the disk.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use coli_base::{Error, Result};

/// Bytes that may still be written where `path` is; `None` where the system does not say.
pub(super) fn free(path: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let facts = rustix::fs::statvfs(path).ok()?;
        facts.f_bavail.checked_mul(facts.f_frsize)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// Puts a file's bytes on the disk, and where the system takes such advice, out of memory: what is read back then comes from the disk.
pub(super) fn settle(file: &File) -> io::Result<()> {
    file.sync_all()?;
    #[cfg(target_os = "linux")]
    // Advice: where it is not taken, memory is compared instead.
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    Ok(())
}

/// Puts the names in a folder on the disk. Where folders cannot be opened, the system does that by itself.
pub(super) fn settle_folder(dir: &Path) {
    #[cfg(unix)]
    let _ = File::open(dir).and_then(|folder| folder.sync_all());
    #[cfg(not(unix))]
    let _ = dir;
}

/// Gives a file its name. One that has it already stays.
pub(super) fn publish(temporary: &Path, path: &Path) -> Result<()> {
    rename(temporary, path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Error::run(format!("`{}` came to be while it was written; nothing was overwritten", path.display()))
        }
        _ => failed(path, &error),
    })?;
    settle_folder(path.parent().unwrap_or(Path::new(".")));
    Ok(())
}

/// A rename that fails where the name is taken.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            // A file system or a kernel that does not know of it.
            Err(Errno::INVAL | Errno::NOSYS) => {}
            done => return Ok(done?),
        }
    }
    // Between the look and the rename nobody else should write here: the folder is locked.
    if to.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(from, to)
}

/// Writes a small file whole, under a temporary name first.
pub(super) fn write(path: &Path, temporary: &Path, bytes: &[u8]) -> Result<()> {
    let written = remove(temporary).and_then(|()| {
        let mut file = File::create_new(temporary)?;
        io::Write::write_all(&mut file, bytes)?;
        file.sync_all()
    });
    let published = written.map_err(|error| failed(path, &error)).and_then(|()| publish(temporary, path));
    if published.is_err() {
        // Where it cannot be removed now, the next start does.
        let _ = remove(temporary);
    }
    published
}

/// The temporary name of a file. It does not end as a file of tensors does.
pub(super) fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(PARTIAL);
    name.into()
}

/// What temporary names end with.
pub(super) const PARTIAL: &str = ".partial";

/// Removes a file that may be there.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// An error of writing, with what to do where the disk is full.
pub(super) fn failed(path: &Path, error: &io::Error) -> Error {
    let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge);
    let advice = if full { "; what is finished stays: make room and give the same command again" } else { "" };
    Error::run(format!("writing `{}`: {error}{advice}", path.display()))
}
