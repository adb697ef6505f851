//! Writes one file of tensors, piece by piece, and reads it back.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use coli_base::{Error, Result};
use coli_shaders::formats::Format;

use super::disk;
use super::layout::{self, Matrix, Part, Shard};
use crate::file::OpenFile;
use crate::header::{self, Entry};

/// Bytes of numbers in memory at a time, or one row.
const PIECE: u64 = 4 << 20;

/// Hears of bytes that were written or read back. Its error ends the work.
pub(super) type Advance<'a> = &'a mut dyn FnMut(u64) -> Result<()>;

/// What was written, in short: of a copied tensor its bytes, of an encoded one the numbers that its rows decode to.
///
/// Never stored, and compared within one process only, so that any function of bytes will do. Pieces are the same both times.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Digest(u64);

/// Writes the file under `path`, a temporary name.
pub(super) fn write(shard: &Shard, path: &Path, advance: Advance<'_>) -> Result<Vec<Digest>> {
    let source = OpenFile::open(&shard.source)?;
    let file = File::create_new(path).map_err(|error| disk::failed(path, &error))?;
    let mut out = Out { file, path };
    out.put(0, &shard.header)?;
    let mut digests = Vec::new();
    for part in &shard.parts {
        digests.push(match &part.matrix {
            None => copy(part, &source, &mut out, advance)?,
            Some(matrix) => encode(part, matrix, &source, &mut out, advance)?,
        });
    }
    disk::settle(&out.file).map_err(|error| disk::failed(path, &error))?;
    shard.identity.check(&shard.source)?;
    Ok(digests)
}

struct Out<'a> {
    file: File,
    path: &'a Path,
}

impl Out<'_> {
    fn put(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        let written = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.write_all(bytes));
        written.map_err(|error| disk::failed(self.path, &error))
    }
}

fn copy(part: &Part, source: &OpenFile, out: &mut Out<'_>, advance: Advance<'_>) -> Result<Digest> {
    let mut hasher = DefaultHasher::new();
    let mut buffer = Vec::new();
    let mut done = 0;
    while done < part.bytes {
        let piece = PIECE.min(part.bytes - done);
        read(source, part.from + done, piece, &mut buffer)?;
        hasher.write(&buffer);
        out.put(part.to + done, &buffer)?;
        done += piece;
        advance(piece)?;
    }
    Ok(Digest(hasher.finish()))
}

fn encode(part: &Part, matrix: &Matrix, source: &OpenFile, out: &mut Out<'_>, advance: Advance<'_>) -> Result<Digest> {
    let Matrix { stored, format, rows, cols, row: (value_bytes, scale_bytes), scales_to } = *matrix;
    // The dimensions come from a header that was checked, and a row has a bound: these products are sizes of parts of a file.
    let row_bytes = part.bytes / rows;
    let mut numbers = Numbers::new(cols);
    let row = |index: u64| format!("tensor `{}` of `{}`: row {index}", part.name, source.path.display());
    let mut buffer = Vec::new();
    let mut done = 0;
    while done < rows {
        let piece = piece_rows(cols).min(rows - done);
        read(source, part.from + done * row_bytes, piece * row_bytes, &mut buffer)?;
        let (mut values, mut scales) = (Vec::new(), Vec::new());
        for (index, bytes) in buffer.chunks_exact(row_bytes as usize).enumerate() {
            stored.decode_row(bytes, &[], &mut numbers.row);
            numbers.check_finite(|| format!("{} has", row(done + index as u64)))?;
            let (row_values, row_scales) = format.encode_row(&numbers.row).ok_or_else(|| unwritten(format))?;
            numbers.decode(format, &row_values, &row_scales);
            numbers.check_finite(|| format!("{} in {} would have", row(done + index as u64), format.name()))?;
            values.extend_from_slice(&row_values);
            scales.extend_from_slice(&row_scales);
        }
        out.put(part.to + done * value_bytes, &values)?;
        if scale_bytes > 0 {
            out.put(scales_to + done * scale_bytes, &scales)?;
        }
        done += piece;
        advance(piece * row_bytes)?;
    }
    Ok(numbers.digest())
}

fn unwritten(format: Format) -> Error {
    Error::run(format!("coli does not write {}", format.name()))
}

/// Rows of so many numbers that are in memory at a time.
fn piece_rows(cols: usize) -> u64 {
    (PIECE / (4 * cols as u64)).max(1)
}

/// A row, and the digest of those that were decoded before.
struct Numbers {
    row: Vec<f32>,
    hasher: DefaultHasher,
}

impl Numbers {
    fn new(cols: usize) -> Self {
        Self { row: vec![0.0; cols], hasher: DefaultHasher::new() }
    }

    fn decode(&mut self, format: Format, values: &[u8], scales: &[u8]) {
        format.decode_row(values, scales, &mut self.row);
        self.hasher.write(bytemuck::cast_slice(&self.row));
    }

    fn check_finite(&self, what: impl FnOnce() -> String) -> Result<()> {
        if self.row.iter().all(|number| number.is_finite()) {
            return Ok(());
        }
        Err(Error::refused(format!("{} a number that is not finite, which has no place in such a format; `keep` copies it", what())))
    }

    fn digest(self) -> Digest {
        Digest(self.hasher.finish())
    }
}

fn read(file: &OpenFile, at: u64, bytes: u64, buffer: &mut Vec<u8>) -> Result<()> {
    buffer.resize(bytes as usize, 0);
    file.read_at(buffer, at).map_err(|error: io::Error| Error::run(format!("reading `{}`: {error}", file.path.display())))
}

/// Reads a written file back, by nothing but its own header, and compares what its tensors hold with what was written.
pub(super) fn verify(shard: &Shard, path: &Path, digests: &[Digest], advance: Advance<'_>) -> Result<()> {
    let differs = |what: &str| {
        Error::run(format!("`{}`: {what} is not what was written: disk, memory or coli is at fault; it was removed", path.display()))
    };
    let (file, entries, notes) = header::open_with_notes(path).map_err(|error| differs("its header").within(error))?;
    let formats = notes.get(layout::FORMATS).and_then(|json| serde_json::from_str(json).ok()).ok_or_else(|| differs("its metadata"))?;
    let shapes = notes.get(layout::SHAPES).and_then(|json| serde_json::from_str(json).ok()).ok_or_else(|| differs("its metadata"))?;
    let entries: HashMap<&str, &Entry> = entries.iter().map(|entry| (entry.name.as_str(), entry)).collect();
    let stored = Stored { file, formats, shapes, entries };
    for (part, digest) in shard.parts.iter().zip(digests) {
        let found = match part.matrix {
            None => stored.copied(&part.name, advance)?,
            Some(_) => stored.encoded(&part.name, advance)?,
        };
        if found.as_ref() != Some(digest) {
            return Err(differs(&format!("tensor `{}`", part.name)));
        }
    }
    Ok(())
}

/// A written file, as its header has it. `None` is what is not as it should be.
struct Stored<'a> {
    file: OpenFile,
    formats: BTreeMap<String, String>,
    shapes: BTreeMap<String, Vec<u64>>,
    entries: HashMap<&'a str, &'a Entry>,
}

impl Stored<'_> {
    fn copied(&self, name: &str, advance: Advance<'_>) -> Result<Option<Digest>> {
        let Some(entry) = self.entries.get(name) else { return Ok(None) };
        let mut hasher = DefaultHasher::new();
        let mut buffer = Vec::new();
        let mut done = 0;
        while done < entry.bytes {
            let piece = PIECE.min(entry.bytes - done);
            read(&self.file, entry.offset + done, piece, &mut buffer)?;
            hasher.write(&buffer);
            done += piece;
            advance(piece)?;
        }
        Ok(Some(Digest(hasher.finish())))
    }

    fn encoded(&self, name: &str, advance: Advance<'_>) -> Result<Option<Digest>> {
        let Some(entry) = self.entries.get(name) else { return Ok(None) };
        let (format, shape) = match self.formats.get(name) {
            Some(format) => (Format::by_name(format), self.shapes.get(name)),
            None => (layout::float(entry.dtype), Some(&entry.shape)),
        };
        let (Some(format), Some([outer @ .., cols])) = (format, shape.map(Vec::as_slice)) else { return Ok(None) };
        let (rows, cols) = (outer.iter().product::<u64>(), *cols as usize);
        let Some((value_bytes, scale_bytes)) = format.row_bytes(cols).zip(format.scale_bytes(cols)) else { return Ok(None) };
        let scales = self.entries.get(layout::scales_of(name).as_str()).copied();
        let whole = |entry: Option<&Entry>, row: usize| entry.map_or(0, |entry| entry.bytes) == rows.saturating_mul(row as u64);
        if !whole(Some(entry), value_bytes) || !whole(scales, scale_bytes) {
            return Ok(None);
        }
        let scales_at = scales.map_or(0, |entry| entry.offset);
        let (mut numbers, mut values, mut scales) = (Numbers::new(cols), Vec::new(), Vec::new());
        let mut done = 0;
        while done < rows {
            let piece = piece_rows(cols).min(rows - done);
            read(&self.file, entry.offset + done * value_bytes as u64, piece * value_bytes as u64, &mut values)?;
            read(&self.file, scales_at + done * scale_bytes as u64, piece * scale_bytes as u64, &mut scales)?;
            for index in 0..piece as usize {
                numbers.decode(format, &values[index * value_bytes..][..value_bytes], &scales[index * scale_bytes..][..scale_bytes]);
            }
            done += piece;
            advance(piece * (value_bytes + scale_bytes) as u64)?;
        }
        Ok(Some(numbers.digest()))
    }
}
