//! One file from a folder, the same bytes from the same files: entries by name, one date, no owner.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use coli_app::sums;

/// Packs the folder `top` of `stage` into `out`; gives the archive's path.
pub(crate) fn archive(stage: &Path, top: &str, out: &Path) -> Result<PathBuf> {
    set_modes(&stage.join(top))?;
    let made = stage.join("out");
    fs::create_dir(&made)?;
    let name = format!("{top}.tar.gz");
    let file = made.join(&name);
    // -n keeps the time of day out of gzip's header.
    let fixed =
        ["--format=ustar", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--use-compress-program=gzip -n"];
    let mut tar = Command::new("tar");
    tar.args(fixed).arg("--directory").arg(stage).arg("--create").arg("--file").arg(&file).arg(top);
    super::output(&mut tar).context("it takes GNU tar and gzip to make the archive")?;
    let sum = sums::list(&made)?;
    fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    place(&file, &out.join(&name))?;
    fs::write(out.join(format!("{name}.sha256")), sum)?;
    Ok(out.join(name))
}

/// The caller's mask must not show in the archive.
#[cfg(unix)]
fn set_modes(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let is_program = path.is_dir() || path.file_name().is_some_and(|name| name == "coli");
    fs::set_permissions(path, fs::Permissions::from_mode(if is_program { 0o755 } else { 0o644 }))?;
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            set_modes(&entry?.path())?;
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn set_modes(_: &Path) -> Result<()> {
    Ok(())
}

/// Copies to another file system under another name first: what has the archive's name is whole.
fn place(from: &Path, to: &Path) -> Result<()> {
    let part = to.with_extension("part.tmp");
    fs::copy(from, &part).with_context(|| part.display().to_string())?;
    fs::rename(&part, to).with_context(|| to.display().to_string())
}
