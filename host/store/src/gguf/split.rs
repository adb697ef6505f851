//! A model in several files, `NAME-00001-of-00003.gguf` and so on. The first part has the model's metadata; each part lists its own
//! tensors.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use coli_base::{Error, Result};

use super::metadata::{Metadata, Quoted};
use super::{Entry, Part};
use crate::file::OpenFile;

const NUMBER: &str = "split.no";
const COUNT: &str = "split.count";
const TENSORS: &str = "split.tensors.count";

/// All parts of a model.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) metadata: Metadata,
    pub(crate) files: Vec<OpenFile>,
    /// Each with the position of its file; file by file, by name within a file.
    pub(crate) tensors: Vec<(usize, Entry)>,
}

/// Opens a model by its file, or by any of its parts, all of which must be there.
pub(crate) fn open(path: &Path) -> Result<Model> {
    let (model, missing) = open_present(path)?;
    match missing.first() {
        Some(first) => {
            let more = if missing.len() > 1 { format!(" and {} more parts are missing", missing.len() - 1) } else { " is missing".into() };
            Err(Error::refused(format!("`{}`{more}: a split model needs all its parts beside each other", first.display())))
        }
        None => Ok(model),
    }
}

/// The same of the parts that are there, and the names of those that are not.
pub(crate) fn open_present(path: &Path) -> Result<(Model, Vec<PathBuf>)> {
    let given = Part::open(path)?;
    let whole = |key: &str| given.metadata.whole(key).map_err(|error| error.within(format_args!("`{}`", path.display())));
    let (number, count) = (whole(NUMBER)?.unwrap_or(0), whole(COUNT)?.unwrap_or(1));
    if count <= 1 {
        return Ok((join(vec![given], false)?, vec![]));
    }
    let names = names(path, number, count).map_err(|error| error.within(format_args!("`{}`", path.display())))?;
    let (present, missing): (Vec<_>, Vec<_>) = (0..).zip(names).partition(|(_, name)| name.exists());
    let mut given = Some(given);
    let mut parts = Vec::new();
    for (index, name) in present {
        let part = match given.take_if(|_| index == number) {
            Some(part) => part,
            None => Part::open(&name)?,
        };
        check(&part, index, count).map_err(|error| error.within(format_args!("`{}`", name.display())))?;
        parts.push(part);
    }
    Ok((join(parts, missing.is_empty())?, missing.into_iter().map(|(_, name)| name).collect()))
}

/// The names of all parts, from that of one.
fn names(path: &Path, number: u64, count: u64) -> Result<Vec<PathBuf>> {
    let wrong =
        || Error::refused(format!("part {} of {count} is not named like `NAME{}`", number.saturating_add(1), ending(number, count)));
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(wrong)?;
    // Five digits each.
    if count > 99_999 || number >= count {
        return Err(Error::refused(format!("its metadata says that it is part {} of {count}", number.saturating_add(1))));
    }
    let stem = name.strip_suffix(&ending(number, count)).ok_or_else(wrong)?;
    Ok((0..count).map(|number| path.with_file_name(format!("{stem}{}", ending(number, count)))).collect())
}

fn ending(number: u64, count: u64) -> String {
    format!("-{:05}-of-{count:05}.gguf", number.saturating_add(1))
}

/// A part must be the one that its name says.
fn check(part: &Part, number: u64, count: u64) -> Result<()> {
    for (key, expected) in [(NUMBER, number), (COUNT, count)] {
        let stored = part.metadata.whole(key)?;
        if stored != Some(expected) {
            let stored = stored.map_or("missing".into(), |stored| stored.to_string());
            return Err(Error::refused(format!("`{key}` is {stored}, its name and the other parts say {expected}")));
        }
    }
    Ok(())
}

/// One model of several parts, whose number of tensors is as their first one says where they are `complete`.
fn join(parts: Vec<Part>, complete: bool) -> Result<Model> {
    let stored: u64 = parts.iter().map(|part| part.tensors.len() as u64).sum();
    let mut model = Model { metadata: Metadata::default(), files: Vec::new(), tensors: Vec::new() };
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (index, part) in parts.into_iter().enumerate() {
        for entry in part.tensors {
            if let Some(other) = seen.insert(entry.name.clone(), index) {
                let (name, first, second) = (Quoted(&entry.name), model.files[other].path.display(), part.file.path.display());
                return Err(Error::refused(format!("tensor {name} is in both `{first}` and `{second}`")));
            }
            model.tensors.push((index, entry));
        }
        if index == 0 {
            model.metadata = part.metadata;
        }
        model.files.push(part.file);
    }
    let claimed = model.metadata.whole(TENSORS)?.filter(|_| complete);
    match claimed {
        Some(claimed) if claimed != stored => {
            let path = model.files[0].path.display();
            Err(Error::refused(format!("`{path}`: `{TENSORS}` is {claimed}, its parts have {stored} tensors")))
        }
        _ => Ok(model),
    }
}
