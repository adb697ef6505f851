//! Positioned reads: no cursor that two readers could disturb, and no mapped memory that a shrinking file would pull away.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use coli_base::{Error, Result};

/// A file that stays open, with the path that messages name.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) path: PathBuf,
    pub(crate) len: u64,
    file: File,
}

impl OpenFile {
    /// Opens a regular file. Anything else is refused before it is opened: opening a pipe would wait for its other end.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let fail = |error: io::Error| Error::of_file(&error, format!("`{}`: {error}", path.display()));
        if !fs::metadata(path).map_err(fail)?.is_file() {
            return Err(Error::refused(format!("`{}` is not a file", path.display())));
        }
        let file = File::open(path).map_err(fail)?;
        let len = file.metadata().map_err(fail)?.len();
        Ok(Self { path: path.to_path_buf(), len, file })
    }

    /// Fills `out` from `offset`.
    pub(crate) fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        read_exact_at(&self.file, out, offset)
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut out: &mut [u8], mut offset: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !out.is_empty() {
        match file.seek_read(out, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                out = &mut out[read..];
                offset += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
