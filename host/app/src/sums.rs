//! `SHA256SUMS`: the files of a release with their checksums, as `sha256sum` writes and checks them.
//!
//! They tell a damaged or mixed installation from a whole one. Whoever can change the files can change the list as well, so against malice
//! it is the archive's own checksum that counts.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _};
use std::path::{Component, Path};

use coli_base::{Error, Result, files};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// The list's name, in the top folder of a release.
pub const NAME: &str = "SHA256SUMS";
/// The folder in which nothing may lie that is not on the list: what is in it gets loaded.
const CLOSED: &str = "models";
const LIST_BYTES_MAX: u64 = 1 << 22;

/// What a comparison of a folder with its list found. All paths are relative to the folder, with `/`, and sorted.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// How many files are on the list.
    pub listed: usize,
    /// On the list, but not there.
    pub missing: Vec<String>,
    /// There, but not as they were released.
    pub altered: Vec<String>,
    /// In `models/`, but not on the list.
    pub extra: Vec<String>,
}

impl Findings {
    /// Whether everything is as it was released.
    pub fn is_clean(&self) -> bool {
        self.missing.is_empty() && self.altered.is_empty() && self.extra.is_empty()
    }
}

/// The list of all files below a folder, but for a list that is there already.
pub fn list(folder: &Path) -> Result<String> {
    let mut text = String::new();
    for path in files_below(folder, "")?.into_iter().filter(|path| path != NAME) {
        let sum = digest(&folder.join(&path)).map_err(|error| unreadable(&folder.join(&path), &error))?;
        text.push_str(&format!("{sum}  {path}\n"));
    }
    Ok(text)
}

/// Compares a folder with its list; `None` where it has none.
pub fn compare(folder: &Path) -> Result<Option<Findings>> {
    let path = folder.join(NAME);
    let Some(bytes) = files::read_bounded(&path, LIST_BYTES_MAX)? else { return Ok(None) };
    let sums = String::from_utf8(bytes).ok().and_then(|text| text.lines().map(parse).collect::<Option<BTreeMap<_, _>>>());
    let Some(sums) = sums.filter(|sums| !sums.is_empty()) else {
        return Err(Error::refused(format!("`{}` is not a list of checksums; unpack the archive again", path.display())));
    };
    let mut findings = Findings { listed: sums.len(), ..Findings::default() };
    for (name, sum) in &sums {
        let path = folder.join(name);
        match digest(&path) {
            Ok(found) if found == *sum => {}
            Ok(_) => findings.altered.push(name.clone()),
            Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => findings.missing.push(name.clone()),
            Err(error) => return Err(unreadable(&path, &error)),
        }
    }
    if folder.join(CLOSED).is_dir() {
        findings.extra = files_below(folder, CLOSED)?.into_iter().filter(|path| !sums.contains_key(path)).collect();
    }
    Ok(Some(findings))
}

/// Path and checksum of a line. A path that leaves the folder is none.
fn parse(line: &str) -> Option<(String, String)> {
    let (sum, path) = line.split_once("  ")?;
    let is_sum = sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_inside = !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    (is_sum && is_inside).then(|| (path.to_string(), sum.to_ascii_lowercase()))
}

/// The checksum of a file. What is no file has the checksum of nothing that was released: an empty text.
fn digest(path: &Path) -> std::io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Ok(String::new());
    }
    let mut file = std::fs::File::open(path)?;
    let (mut hasher, mut piece) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut piece)? {
            0 => break,
            len => hasher.update(&piece[..len]),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Everything in `inside`, a folder of `folder`, that is no folder: relative to `folder`, sorted. A link is not followed.
fn files_below(folder: &Path, inside: &str) -> Result<Vec<String>> {
    let path = folder.join(inside);
    let mut found = Vec::new();
    let fail = |error: std::io::Error| unreadable(&path, &error);
    for entry in std::fs::read_dir(&path).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let name = if inside.is_empty() { name } else { format!("{inside}/{name}") };
        if entry.file_type().map_err(fail)?.is_dir() {
            found.extend(files_below(folder, &name)?);
        } else {
            found.push(name);
        }
    }
    found.sort();
    Ok(found)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::run(format!("`{}` cannot be read: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_checksum_and_a_path_inside() {
        let sum = "0aF".repeat(21) + "9";
        assert_eq!(parse(&format!("{sum}  a/b c")), Some(("a/b c".into(), sum.to_lowercase())));
        for path in ["", "/a", "../a", "a/../../b", "./a"] {
            assert_eq!(parse(&format!("{sum}  {path}")), None, "{path}");
        }
        for line in ["", "a", &format!("{sum} a"), &format!("{}  a", &sum[1..]), &format!("{}g  a", &sum[1..])] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
