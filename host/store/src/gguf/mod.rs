//! GGUF, versions 2 and 3, little-endian: magic, version, two counts, metadata, tensor list, padding, then the tensors' bytes, each tensor
//! at a multiple of the alignment. A model may be split into several such files ([`split`]).
//!
//! | bytes | what |
//! |---|---|
//! | 4 | `GGUF` |
//! | 4 | version |
//! | 8 + 8 | number of tensors, number of keys |
//! | | keys: text, type (4), value |
//! | | tensors: name, dimensions (4), each (8), innermost first, type (4), offset from the start of the data (8) |
//!
//! A text is its length (8) and UTF-8; a list is a type (4), a length (8) and values. Everything is checked here, against the file's size
//! and against the other tensors, so that who reads tensors need not.

mod metadata;
mod reader;
mod split;
#[cfg(test)]
mod tests;
mod types;

use std::collections::HashSet;
use std::path::Path;

use coli_base::{Error, Result};

pub use metadata::{List, Metadata, Value};
pub(crate) use split::{Model, open, open_present};
pub(crate) use types::name as type_name;

use crate::file::OpenFile;
use metadata::Quoted;
use reader::Reader;

/// What a GGUF file begins with.
const MAGIC: [u8; 4] = *b"GGUF";
const ALIGNMENT: &str = "general.alignment";
const ALIGNMENT_DEFAULT: u64 = 32;
/// ggml's own bound.
const DIMS_MAX: u32 = 4;
/// A name's length, the number of dimensions, a type and an offset.
const TENSOR_BYTES_MIN: u64 = 8 + 4 + 4 + 8;

/// A tensor as its file lists it. It lies within the file, and apart from all others.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// ggml's number of its type.
    pub(crate) kind: u32,
    /// Outermost first. Their product is a `u64`.
    pub(crate) shape: Vec<u64>,
    /// From the start of the file.
    pub(crate) offset: u64,
    /// For a type that is not known, up to the next tensor.
    pub(crate) bytes: u64,
}

/// One file.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) file: OpenFile,
    pub(crate) metadata: Metadata,
    /// By name.
    pub(crate) tensors: Vec<Entry>,
}

/// Whether a file begins as a GGUF file does.
pub(crate) fn is_gguf(path: &Path) -> bool {
    let mut magic = [0; 4];
    OpenFile::open(path).is_ok_and(|file| file.read_at(&mut magic, 0).is_ok()) && magic == MAGIC
}

impl Part {
    /// Opens one file and checks its header.
    fn open(path: &Path) -> Result<Self> {
        let file = OpenFile::open(path)?;
        match read(&file) {
            Ok((metadata, tensors)) => Ok(Self { file, metadata, tensors }),
            Err(error) => Err(error.within(format_args!("`{}`", path.display()))),
        }
    }
}

fn read(file: &OpenFile) -> Result<(Metadata, Vec<Entry>)> {
    let mut reader = Reader::new(file);
    check_start(file, &mut reader)?;
    let (tensors, keys) = (reader.u64()?, reader.u64()?);
    let metadata = Metadata::read(&mut reader, keys).map_err(|error| error.within("metadata"))?;
    let alignment = alignment(&metadata)?;
    reader.check(tensors, TENSOR_BYTES_MIN, format_args!("{tensors} tensors"))?;
    let mut entries = Vec::new();
    let mut names = HashSet::new();
    for _ in 0..tensors {
        let entry = entry(&mut reader, alignment)?;
        if !names.insert(entry.name.clone()) {
            return Err(Error::refused(format!("tensor {} is there twice", Quoted(&entry.name))));
        }
        entries.push(entry);
    }
    // The header is far below the largest number, and so is the alignment.
    let data_start = reader.at().next_multiple_of(alignment);
    place(&mut entries, data_start, file.len)?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((metadata, entries))
}

fn check_start(file: &OpenFile, reader: &mut Reader<'_>) -> Result<()> {
    let not_gguf = || Error::refused(format!("not a GGUF file: its {} bytes do not begin with `GGUF` and a version", file.len));
    if reader.array().map_err(|_| not_gguf())? != MAGIC {
        return Err(not_gguf());
    }
    let version = reader.u32().map_err(|_| not_gguf())?;
    match version {
        2 | 3 => Ok(()),
        // Whoever wrote it counts bytes from the other end; no version is so large.
        _ if version.swap_bytes() <= 0xffff && version > 0xffff => {
            Err(Error::refused("a big-endian GGUF file; make a little-endian one of it with `gguf-convert-endian FILE little`"))
        }
        _ => Err(Error::refused(format!("GGUF version {version}; versions 2 and 3 are read"))),
    }
}

fn alignment(metadata: &Metadata) -> Result<u64> {
    let alignment = metadata.whole(ALIGNMENT)?.unwrap_or(ALIGNMENT_DEFAULT);
    if alignment.is_power_of_two() && alignment <= u32::MAX.into() {
        Ok(alignment)
    } else {
        Err(Error::refused(format!("`{ALIGNMENT}` is {alignment}, not a power of two")))
    }
}

/// A tensor whose offset counts from the start of the data, and whose bytes are 0 where its type does not tell them.
fn entry(reader: &mut Reader<'_>, alignment: u64) -> Result<Entry> {
    let name = reader.text().map_err(|error| error.within("a tensor's name"))?;
    let within = |what: String| Error::refused(format!("tensor {}: {what}", Quoted(&name)));
    let dims = reader.u32()?;
    if dims > DIMS_MAX {
        return Err(within(format!("{dims} dimensions, at most {DIMS_MAX}")));
    }
    let mut shape = (0..dims).map(|_| reader.u64()).collect::<Result<Vec<u64>>>()?;
    shape.reverse();
    let kind = reader.u32()?;
    let offset = reader.u64()?;
    let absurd = || within(format!("its dimensions {shape:?} are absurd"));
    // Empty dimensions must not hide absurd ones.
    let numbers = shape.iter().try_fold(1u64, |product, dim| product.checked_mul((*dim).max(1))).ok_or_else(absurd)?;
    let is_empty = shape.contains(&0);
    let bytes = match types::of_number(kind) {
        Some(known) => {
            let row = shape.last().copied().unwrap_or(1);
            if row % known.block != 0 {
                return Err(within(format!("rows of {row} numbers are no whole blocks of {} ({})", known.block, type_name(kind))));
            }
            let bytes = (numbers / known.block).checked_mul(known.bytes).ok_or_else(absurd)?;
            if is_empty { 0 } else { bytes }
        }
        None => 0,
    };
    if offset % alignment != 0 {
        return Err(within(format!("its offset {offset} is no multiple of the alignment {alignment}")));
    }
    Ok(Entry { name, kind, shape, offset, bytes })
}

/// Gives every tensor its place in the file. Each must lie in the file, behind the end of the one before it.
fn place(entries: &mut [Entry], data_start: u64, file_len: u64) -> Result<()> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    // What is empty lies before what begins at the same place.
    order.sort_by_key(|&at| (entries[at].offset, entries[at].bytes, at));
    let mut end = 0u64;
    let mut before: Option<usize> = None;
    for (position, &at) in order.iter().enumerate() {
        let next = order.get(position + 1).map(|&next| entries[next].offset);
        let entry = &entries[at];
        let within = |what: String| Error::refused(format!("tensor {}: {what}", Quoted(&entry.name)));
        let start = data_start.checked_add(entry.offset).filter(|start| *start <= file_len);
        let (start, is_known) = (start.unwrap_or(file_len), start.is_some() && types::of_number(entry.kind).is_some());
        let bytes = match (is_known, entry.shape.contains(&0)) {
            (true, _) => entry.bytes,
            (false, true) => 0,
            // The next one's offset is not smaller, and it is checked in its turn.
            (false, false) => next.map_or(file_len, |next| data_start.saturating_add(next).min(file_len)) - start,
        };
        let needed = data_start.saturating_add(entry.offset).saturating_add(entry.bytes);
        if needed > file_len {
            return Err(within(format!("truncated: it ends at byte {needed}, the file has {file_len}")));
        }
        if let Some(before) = before.filter(|_| bytes > 0 && entry.offset < end) {
            return Err(within(format!("it begins within tensor {}", Quoted(&entries[before].name))));
        }
        if bytes > 0 {
            (end, before) = (entry.offset + bytes, Some(at));
        }
        let entry = &mut entries[at];
        (entry.offset, entry.bytes) = (start, bytes);
    }
    Ok(())
}
