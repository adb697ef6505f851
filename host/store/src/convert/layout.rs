//! Where every byte of a file to come lies, from the header of the file that it is made of.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use coli_base::{Error, Result};
use coli_shaders::formats::Format;
use safetensors::Dtype;
use serde_json::{Map, Value, json};

use super::state::Identity;
use super::{Choice, Figures, Options, Role, Roles};
use crate::header::{self, Entry};

/// Key of the file's metadata: from names of encoded tensors to names of formats.
pub(super) const FORMATS: &str = "coli.formats";
/// Likewise: from names to dimensions.
pub(super) const SHAPES: &str = "coli.shapes";
/// What the name of a tensor of scales ends with.
pub(super) const SCALES: &str = ".qs";

const LENGTH_BYTES: u64 = 8;
/// What a reader takes, `header.rs` among them.
const HEADER_MAX: usize = 100_000_000;
/// A row is encoded whole, in memory.
const COLS_MAX: u64 = 1 << 26;

/// A file of tensors to be written.
#[derive(Debug)]
pub(super) struct Shard {
    /// Its path within both folders.
    pub(super) name: PathBuf,
    pub(super) source: PathBuf,
    pub(super) identity: Identity,
    /// Length and JSON.
    pub(super) header: Vec<u8>,
    /// In the order of the source, which is read once from start to end.
    pub(super) parts: Vec<Part>,
    /// Bytes of the file.
    pub(super) bytes: u64,
    /// Bytes of tensors in the source.
    pub(super) before: u64,
    /// Names of all tensors in it.
    pub(super) names: Vec<String>,
}

/// A tensor of the source.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: String,
    /// From the start of the source.
    pub(super) from: u64,
    /// Bytes there.
    pub(super) bytes: u64,
    /// From the start of the target: the bytes, or the values.
    pub(super) to: u64,
    pub(super) matrix: Option<Matrix>,
}

/// Rows that are encoded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix {
    pub(super) stored: Format,
    pub(super) format: Format,
    pub(super) rows: u64,
    pub(super) cols: usize,
    /// Bytes of a row of values, and of scales.
    pub(super) row: (u64, u64),
    /// From the start of the target.
    pub(super) scales_to: u64,
}

/// Lays out the file that is made of `source`, and counts its tensors.
pub(super) fn shard(from: &Path, source: &Path, roles: &Roles, options: Options, figures: &mut Figures) -> Result<Shard> {
    let within = |error: Error| error.within(format_args!("`{}`", source.display()));
    let name = source.strip_prefix(from).map_err(|_| within(Error::refused("lies outside of the model's folder")))?.to_path_buf();
    let (_, mut entries, notes) = header::open_with_notes(source)?;
    if notes.contains_key(FORMATS) {
        return Err(within(Error::refused("is the result of a conversion; convert the model that it was made of")));
    }
    entries.sort_by_key(|entry| entry.offset);
    let mut plans = Vec::new();
    for entry in &entries {
        let role = roles.get(&entry.name);
        let matrix = matrix(entry, role, options).map_err(within)?;
        count(figures, role, entry, matrix.as_ref());
        plans.push((entry, matrix));
    }
    let (header, places) = header_of(notes.into_iter().collect(), &plans).map_err(within)?;
    let parts = plans.iter().map(|(entry, matrix)| {
        let to = places[&entry.name];
        let matrix = matrix.map(|matrix| Matrix { scales_to: places.get(&scales_of(&entry.name)).copied().unwrap_or(0), ..matrix });
        Part { name: entry.name.clone(), from: entry.offset, bytes: entry.bytes, to, matrix }
    });
    let bytes = places[END];
    let names = places.keys().filter(|name| *name != END).cloned().collect();
    let before = entries.iter().map(|entry| entry.bytes).sum();
    Ok(Shard { name, source: source.into(), identity: Identity::of(source)?, header, parts: parts.collect(), bytes, before, names })
}

/// The name of a tensor's scales.
pub(super) fn scales_of(name: &str) -> String {
    format!("{name}{SCALES}")
}

/// The format of a plain tensor.
pub(super) fn float(dtype: Dtype) -> Option<Format> {
    match dtype {
        Dtype::F32 => Some(Format::F32),
        Dtype::F16 => Some(Format::F16),
        Dtype::BF16 => Some(Format::BF16),
        _ => None,
    }
}

/// How a tensor is encoded; `None` where it is copied.
fn matrix(entry: &Entry, role: Option<Role>, options: Options) -> Result<Option<Matrix>> {
    let choice = match role {
        Some(Role::Expert) => options.experts,
        Some(Role::Dense) => options.dense,
        Some(Role::Kept) | None => Choice::Keep,
    };
    let (Choice::As(format), [outer @ .., cols]) = (choice, &entry.shape[..]) else { return Ok(None) };
    let refuse = |what: String| Error::refused(format!("tensor `{}` {what}", entry.name));
    let unread = || refuse(format!("is stored as {}; what can be encoded is bf16, f16 and f32", entry.dtype.to_string().to_lowercase()));
    let stored = float(entry.dtype).ok_or_else(unread)?;
    if stored == format || entry.bytes == 0 {
        return Ok(None);
    }
    if *cols > COLS_MAX {
        return Err(refuse(format!("has rows of {cols} numbers, which are too long to be encoded")));
    }
    let cols = *cols as usize;
    let sizes = format.row_bytes(cols).zip(format.scale_bytes(cols)).zip(stored.row_bytes(cols));
    let ((values, scales), before) = sizes.ok_or_else(|| refuse(format!("has rows of {cols} numbers, which {format:?} cannot store")))?;
    // A scale for every few numbers takes more than it saves: the taps of a short convolution, say.
    if scales > 0 && values + scales >= before {
        return Ok(None);
    }
    // The product of all dimensions is that of the tensor's bytes.
    let rows = outer.iter().product();
    Ok(Some(Matrix { stored, format, rows, cols, row: (values as u64, scales as u64), scales_to: 0 }))
}

fn count(figures: &mut Figures, role: Option<Role>, entry: &Entry, matrix: Option<&Matrix>) {
    let figure = match (role, matrix) {
        (Some(Role::Expert), Some(_)) => &mut figures.experts,
        (_, Some(_)) => &mut figures.dense,
        (Some(_), None) => &mut figures.kept,
        (None, None) => &mut figures.unused,
    };
    figure.add(entry.bytes, matrix.map_or(entry.bytes, |matrix| matrix.rows.saturating_mul(matrix.row.0 + matrix.row.1)));
}

/// In place of a name: where the file ends. A tensor of that name is refused.
const END: &str = "";

/// A tensor of the target.
struct Place {
    name: String,
    dtype: Dtype,
    shape: Vec<u64>,
    bytes: u64,
}

/// The bytes before the first tensor, and where each tensor begins.
///
/// The order is that of the published writer, so that every number of a mapped file is aligned: wide types first, then by name.
fn header_of(notes: BTreeMap<String, String>, plans: &[(&Entry, Option<Matrix>)]) -> Result<(Vec<u8>, BTreeMap<String, u64>)> {
    let mut places: Vec<Place> = plans.iter().flat_map(|(entry, matrix)| places(entry, matrix.as_ref())).collect();
    places.sort_by(|a, b| (b.dtype.bitsize(), &a.name).cmp(&(a.dtype.bitsize(), &b.name)));
    let mut names: HashSet<&str> = HashSet::from([END]);
    if let Some(twice) = places.iter().find(|place| !names.insert(&place.name)) {
        return Err(Error::refused(format!("two tensors of the result would be named `{}`", twice.name)));
    }
    let mut json = Map::new();
    json.insert("__metadata__".into(), notes_of(notes, plans)?);
    let (mut end, mut starts) = (0u64, BTreeMap::new());
    for place in places {
        let start = end;
        end = start.checked_add(place.bytes).ok_or_else(|| Error::refused("its tensors have more bytes than any file"))?;
        json.insert(place.name.clone(), json!({"dtype": place.dtype.to_string(), "shape": place.shape, "data_offsets": [start, end]}));
        starts.insert(place.name, start);
    }
    starts.insert(END.into(), end);
    let mut json = Value::Object(json).to_string().into_bytes();
    json.resize(json.len().next_multiple_of(LENGTH_BYTES as usize), b' ');
    if json.len() > HEADER_MAX {
        return Err(Error::refused(format!("its tensors are so many that the header would have more than {HEADER_MAX} bytes")));
    }
    let mut header = (json.len() as u64).to_le_bytes().to_vec();
    header.append(&mut json);
    starts.values_mut().for_each(|start| *start += header.len() as u64);
    Ok((header, starts))
}

/// What a tensor of the source becomes.
fn places(entry: &Entry, matrix: Option<&Matrix>) -> Vec<Place> {
    let place = |name: String, dtype: Dtype, shape: Vec<u64>, bytes: u64| Place { name, dtype, shape, bytes };
    let Some(matrix) = matrix else { return vec![place(entry.name.clone(), entry.dtype, entry.shape.clone(), entry.bytes)] };
    let Matrix { rows, row: (values, scales), .. } = *matrix;
    let with_last = |last: u64| {
        let outer = entry.shape.iter().take(entry.shape.len() - 1);
        outer.copied().chain([last]).collect::<Vec<u64>>()
    };
    if let Some(dtype) = [Dtype::F32, Dtype::F16, Dtype::BF16].into_iter().find(|dtype| float(*dtype) == Some(matrix.format)) {
        return vec![place(entry.name.clone(), dtype, entry.shape.clone(), rows.saturating_mul(values))];
    }
    let values = place(entry.name.clone(), Dtype::U8, with_last(values), rows.saturating_mul(values));
    let scales = place(scales_of(&entry.name), Dtype::F32, with_last(scales / 4), rows.saturating_mul(scales));
    vec![values, scales]
}

/// The file's notes: those of the source, then ours, each in the order of names, so that the same conversion gives the same bytes.
fn notes_of(mut notes: BTreeMap<String, String>, plans: &[(&Entry, Option<Matrix>)]) -> Result<Value> {
    let (mut formats, mut shapes) = (BTreeMap::new(), BTreeMap::new());
    for (entry, matrix) in plans {
        if let Some(matrix) = matrix.filter(|matrix| matrix.row.1 > 0) {
            formats.insert(&entry.name, matrix.format.name());
            shapes.insert(&entry.name, &entry.shape);
        }
    }
    if notes.insert(FORMATS.into(), json!(formats).to_string()).is_some() | notes.insert(SHAPES.into(), json!(shapes).to_string()).is_some()
    {
        return Err(Error::refused(format!("its metadata has `{FORMATS}` or `{SHAPES}` already")));
    }
    Ok(json!(notes))
}
