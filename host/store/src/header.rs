//! The header of one safetensors file: 8 bytes of length, JSON, then the tensors' bytes without gaps.
//!
//! The `safetensors` crate parses the JSON and checks that the tensors lie one after the other and are as long as shape and type say.
//! What it cannot check without the whole file in memory is checked here: lengths against the file's size, before they are believed.

use std::collections::HashMap;
use std::path::Path;

use coli_base::{Error, Result};
use safetensors::Dtype;
use safetensors::tensor::Metadata;

use crate::file::OpenFile;

/// No published model comes near; a header is read whole, so a false length must not become an allocation.
const HEADER_MAX: u64 = 100_000_000;

const LENGTH_BYTES: u64 = 8;

/// A tensor as its header describes it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<u64>,
    /// From the start of the file.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// The file's own notes: its `__metadata__`.
pub(crate) type Notes = HashMap<String, String>;

/// Opens a file and reads its header. Every entry lies within the file; of the notes nothing has been checked.
pub(crate) fn open_with_notes(path: &Path) -> Result<(OpenFile, Vec<Entry>, Notes)> {
    let file = OpenFile::open(path)?;
    let (entries, notes) = read(&file).map_err(|error| error.within(format_args!("`{}`", path.display())))?;
    Ok((file, entries, notes))
}

fn read(file: &OpenFile) -> Result<(Vec<Entry>, Notes)> {
    let json = read_json(file)?;
    let metadata = parse(&json)?;
    // Both were checked against the file's size and the bound, so the sums cannot overflow.
    let data_start = LENGTH_BYTES + json.len() as u64;
    let data_len = file.len - data_start;
    let claimed = metadata.data_len() as u64;
    if claimed > data_len {
        return Err(Error::refused(format!("truncated: the header describes {claimed} bytes of tensors, the file has {data_len}")));
    }
    if claimed < data_len {
        return Err(Error::refused(format!("{} bytes after the last tensor belong to none", data_len - claimed)));
    }
    Ok((entries(&metadata, data_start), metadata.metadata().clone().unwrap_or_default()))
}

/// A header that is to be written, length and JSON, as a reader will find it.
pub(crate) fn of_bytes(header: &[u8]) -> Result<(Vec<Entry>, Notes)> {
    let metadata = parse(header.get(LENGTH_BYTES as usize..).unwrap_or_default())?;
    Ok((entries(&metadata, header.len() as u64), metadata.metadata().clone().unwrap_or_default()))
}

fn parse(json: &[u8]) -> Result<Metadata> {
    serde_json::from_slice(json).map_err(|error| Error::refused(format!("not a safetensors header: {error}")))
}

/// The header's JSON, whose length is believed only as far as the file reaches.
fn read_json(file: &OpenFile) -> Result<Vec<u8>> {
    let too_short = || Error::refused(format!("not a safetensors file: {} bytes", file.len));
    let after_length = file.len.checked_sub(LENGTH_BYTES).ok_or_else(too_short)?;
    let fail = |error: std::io::Error| Error::run(format!("reading the header: {error}"));
    let mut length = [0; LENGTH_BYTES as usize];
    file.read_at(&mut length, 0).map_err(fail)?;
    let length = u64::from_le_bytes(length);
    if length > after_length {
        return Err(Error::refused(format!(
            "not a safetensors file, or truncated: the header claims {length} bytes, the file has {after_length} after its length"
        )));
    }
    if length > HEADER_MAX {
        return Err(Error::refused(format!("the header claims {length} bytes, more than {HEADER_MAX}")));
    }
    let mut json = vec![0; length as usize];
    file.read_at(&mut json, LENGTH_BYTES).map_err(fail)?;
    Ok(json)
}

fn entries(metadata: &Metadata, data_start: u64) -> Vec<Entry> {
    let mut entries: Vec<Entry> = metadata
        .tensors()
        .into_iter()
        .map(|(name, info)| Entry {
            name,
            dtype: info.dtype,
            shape: info.shape.iter().map(|&dim| dim as u64).collect(),
            offset: data_start + info.data_offsets.0 as u64,
            bytes: (info.data_offsets.1 - info.data_offsets.0) as u64,
        })
        .collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Stored, file_with_header, save};
    use proptest::prelude::*;

    fn open(path: &Path) -> Result<(OpenFile, Vec<Entry>)> {
        open_with_notes(path).map(|(file, entries, _)| (file, entries))
    }

    /// The error of a file with these bytes.
    fn refusal(bytes: &[u8]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.safetensors");
        std::fs::write(&path, bytes).unwrap();
        let error = open(&path).unwrap_err();
        assert_eq!(error.kind, coli_base::Kind::Refused);
        assert!(error.text.contains("x.safetensors"), "{error}");
        error.text
    }

    #[test]
    fn a_header_is_read_with_offsets_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.safetensors");
        save(&path, &[Stored::f32("b", &[2, 3]), Stored::bf16("a", &[4]), Stored::raw("c", Dtype::I8, &[5], vec![7; 5])]);
        let (file, entries) = open(&path).unwrap();
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        let mut bytes = [0; 5];
        file.read_at(&mut bytes, entries[2].offset).unwrap();
        assert_eq!((bytes, entries[2].bytes, &entries[1].shape), ([7; 5], 5, &vec![2, 3]));
    }

    #[test]
    fn a_file_without_tensors_is_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.safetensors");
        std::fs::write(&path, file_with_header("{}", 0)).unwrap();
        assert!(open(&path).unwrap().1.is_empty());
    }

    #[test]
    fn bad_lengths_are_refused() {
        assert!(refusal(b"").contains("0 bytes"));
        assert!(refusal(b"1234567").contains("7 bytes"));
        assert!(refusal(&u64::MAX.to_le_bytes()).contains("claims 18446744073709551615 bytes"));
        let mut lying = file_with_header("{}", 0);
        lying[0] = 3;
        assert!(refusal(&lying).contains("claims 3 bytes, the file has 2"));
    }

    #[test]
    fn a_huge_header_is_refused_without_reading_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.safetensors");
        std::fs::write(&path, (HEADER_MAX + 1).to_le_bytes()).unwrap();
        // A sparse file: the claim fits the file, the bound does not allow it.
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(HEADER_MAX + 100).unwrap();
        assert!(open(&path).unwrap_err().text.contains("more than 100000000"));
    }

    #[test]
    fn bad_headers_are_refused() {
        let one = |text: &str, data: usize| refusal(&file_with_header(text, data));
        assert!(one("hello", 0).contains("not a safetensors header"));
        assert!(one("[]", 0).contains("not a safetensors header"));
        assert!(one(r#"{"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}}"#, 4).contains("F99"));
        assert!(one(r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#, 3).contains("truncated"));
        assert!(one(r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#, 6).contains("2 bytes after"));
        assert!(one(r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}"#, 4).contains("header"));
        assert!(one(r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}"#, 4).contains('a'));
        let absurd = r#"{"a":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,4]}}"#;
        assert!(one(absurd, 4).contains("header"));
        let overlap = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#;
        assert!(one(overlap, 8).contains('b'));
        let gap = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}"#;
        assert!(one(gap, 12).contains('b'));
    }

    #[test]
    fn what_is_not_a_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(open(dir.path()).unwrap_err().text.contains("is not a file"));
        assert!(open(&dir.path().join("none")).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x.safetensors");
            for bytes in [bytes.clone(), file_with_header(&String::from_utf8_lossy(&bytes), 8)] {
                std::fs::write(&path, bytes).unwrap();
                let _ = open(&path);
            }
        }

        #[test]
        fn no_change_of_a_good_header_panics(at in 0usize..90, byte in any::<u8>(), offsets in any::<(u64, u64)>()) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x.safetensors");
            let (start, end) = offsets;
            for (start, end) in [(0, 16), (start, end), (0, end), (start % 20, end % 20)] {
                let text = format!(r#"{{"tensor":{{"dtype":"F32","shape":[2,2],"data_offsets":[{start},{end}]}}}}"#);
                let mut bytes = file_with_header(&text, 16);
                let len = bytes.len();
                bytes[at % len] = byte;
                std::fs::write(&path, bytes).unwrap();
                if let Ok((file, entries)) = open(&path) {
                    for entry in entries {
                        prop_assert!(entry.offset + entry.bytes <= file.len);
                    }
                }
            }
        }
    }
}
