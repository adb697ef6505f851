//! `SHA256SUMS`: the files of a release with their checksums, as `sha256sum` writes and checks them.
//!
//! They tell a damaged or mixed installation from a whole one. Whoever can change the files can change the list as well, so against malice
//! it is the archive's own checksum that counts.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read as _};
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
    /// What cannot be read, so that nothing is known of it: files of the list, and folders in `models/`.
    pub unreadable: Vec<String>,
    /// In `models/`, but not on the list.
    pub extra: Vec<String>,
}

impl Findings {
    /// Whether everything is as it was released.
    pub fn is_clean(&self) -> bool {
        [&self.missing, &self.altered, &self.unreadable, &self.extra].iter().all(|paths| paths.is_empty())
    }
}

/// The list of all files below a folder, but for a list that is there already.
pub fn list(folder: &Path) -> Result<String> {
    let fail = |path: &str, error: &io::Error| Error::run(format!("`{}` cannot be read: {error}", folder.join(path).display()));
    let (mut text, mut unreadable) = (String::new(), Vec::new());
    let paths = files_below(folder, "", &mut unreadable);
    if let Some((path, error)) = unreadable.first() {
        return Err(fail(path, error));
    }
    for path in paths.into_iter().filter(|path| path != NAME) {
        let sum = digest(&folder.join(&path)).map_err(|error| fail(&path, &error))?;
        text.push_str(&format!("{sum}  {path}\n"));
    }
    Ok(text)
}

/// Compares a folder with its list; `None` where it has none.
pub fn compare(folder: &Path) -> Result<Option<Findings>> {
    let path = folder.join(NAME);
    let Some(bytes) = files::read_bounded(&path, LIST_BYTES_MAX)? else { return Ok(None) };
    let sums = sums(&bytes).map_err(|why| Error::refused(format!("`{}` {why}; unpack the archive again", path.display())))?;
    let mut findings = Findings { listed: sums.len(), ..Findings::default() };
    for (name, sum) in &sums {
        let path = folder.join(name);
        match digest(&path) {
            Ok(found) if found == *sum => {}
            Ok(_) => findings.altered.push(name.clone()),
            Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => findings.missing.push(name.clone()),
            Err(_) => findings.unreadable.push(name.clone()),
        }
    }
    if folder.join(CLOSED).is_dir() {
        let mut unreadable = Vec::new();
        let below = files_below(folder, CLOSED, &mut unreadable);
        findings.extra = below.into_iter().filter(|path| !sums.contains_key(path)).collect();
        findings.unreadable.extend(unreadable.into_iter().map(|(path, _)| path));
        findings.unreadable.sort();
        findings.unreadable.dedup();
    }
    Ok(Some(findings))
}

/// Checksums by path; an error says what is wrong with the list.
fn sums(bytes: &[u8]) -> std::result::Result<BTreeMap<String, String>, String> {
    let none = "is not a list of checksums";
    let mut sums = BTreeMap::new();
    for line in std::str::from_utf8(bytes).map_err(|_| none)?.lines() {
        let (path, sum) = parse(line).ok_or(none)?;
        if sums.get(&path).is_some_and(|other| *other != sum) {
            return Err(format!("has two checksums for `{}`", path.escape_debug()));
        }
        sums.insert(path, sum);
    }
    if sums.is_empty() { Err(none.into()) } else { Ok(sums) }
}

/// Path and checksum of a line. A path that leaves the folder is none.
fn parse(line: &str) -> Option<(String, String)> {
    let (sum, path) = line.split_once("  ")?;
    let is_sum = sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_inside = !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    (is_sum && is_inside).then(|| (path.to_string(), sum.to_ascii_lowercase()))
}

/// The checksum of a file. What is no file has the checksum of nothing that was released: an empty text.
fn digest(path: &Path) -> io::Result<String> {
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

/// Everything in `inside`, a folder of `folder`, that is no folder: relative to `folder`, sorted. A link is not followed. What cannot be
/// read goes to `unreadable`.
fn files_below(folder: &Path, inside: &str, unreadable: &mut Vec<(String, io::Error)>) -> Vec<String> {
    let mut found = Vec::new();
    let entries = match std::fs::read_dir(folder.join(inside)) {
        Ok(entries) => entries,
        Err(error) => {
            unreadable.push((inside.into(), error));
            return found;
        }
    };
    for entry in entries {
        let named = entry.and_then(|entry| Ok((entry.file_name().to_string_lossy().into_owned(), entry.file_type()?.is_dir())));
        let (name, is_folder) = match named {
            Ok(named) => named,
            Err(error) => {
                unreadable.push((inside.into(), error));
                continue;
            }
        };
        let name = if inside.is_empty() { name } else { format!("{inside}/{name}") };
        match is_folder {
            true => found.extend(files_below(folder, &name, unreadable)),
            false => found.push(name),
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_checksum() {
        let line = |digit: &str, path: &str| format!("{}  {path}\n", digit.repeat(64));
        assert_eq!(sums([line("0", "a"), line("1", "b"), line("0", "a")].concat().as_bytes()).unwrap().len(), 2);
        let twice = [line("0", "a\u{202e}"), line("1", "a\u{202e}")].concat();
        assert_eq!(sums(twice.as_bytes()).unwrap_err(), "has two checksums for `a\\u{202e}`");
        for bytes in [&b""[..], b"\xff", b"x\n"] {
            assert_eq!(sums(bytes).unwrap_err(), "is not a list of checksums");
        }
    }

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
