//! Programs and libraries as they are released: without symbols, and without the paths of the machine that built them.
//!
//! After `strip` there are paths left, in the places that a panic names. Those of our own crates are relative. Those of crates from
//! outside begin with the folder that cargo unpacked them to, in somebody's home. `--remap-path-prefix` would leave them out, but it holds
//! for every crate, so a release would be a second build of everything, and what is tested would not be what is released. Instead the
//! bytes of these folders become slashes, as many as there were: the text keeps its length, and its file keeps its name. Once cargo's
//! `trim-paths` is stable, that is the better way.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use coli_test_common::built;

/// Copies a program or library without symbols and without these folders.
pub(crate) fn install(from: &Path, to: &Path, folders: &[PathBuf]) -> Result<()> {
    super::copy(from, to)?;
    // A library for Apple's linker keeps the symbols that it is opened for only with -x.
    let which = if cfg!(target_os = "macos") { "-x" } else { "--strip-all" };
    super::output(Command::new("strip").arg(which).arg(to))?;
    let mut bytes = fs::read(to)?;
    for folder in folders {
        blank(&mut bytes, folder.as_os_str().as_encoded_bytes());
    }
    let root = built::root();
    let left = find(&bytes, root.as_os_str().as_encoded_bytes(), 0);
    ensure!(left.is_none(), "{} has the path {} in it, which no release may have", from.display(), root.display());
    fs::write(to, bytes)?;
    Ok(())
}

/// Writes slashes over every occurrence of a text.
fn blank(bytes: &mut [u8], text: &[u8]) {
    let mut start = 0;
    while let Some(at) = find(bytes, text, start) {
        start = at + text.len();
        bytes[at..start].fill(b'/');
    }
}

fn find(bytes: &[u8], text: &[u8], start: usize) -> Option<usize> {
    let rest = bytes.get(start..).filter(|_| !text.is_empty())?;
    rest.windows(text.len()).position(|window| window == text).map(|at| start + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_occurrence_becomes_slashes_and_nothing_else_changes() {
        let mut bytes = *b"/a/b/x-1/src\0/a/b/a/b/y/a/c";
        blank(&mut bytes, b"/a/b");
        assert_eq!(&bytes, b"/////x-1/src\0/////////y/a/c");
        blank(&mut bytes, b"");
        assert_eq!(find(&bytes, b"/a/b", 0), None);
        assert_eq!(find(&bytes, b"/a/c", 0), Some(bytes.len() - 4));
    }
}
