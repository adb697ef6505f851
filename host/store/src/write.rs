//! Writes f32 tensors to a safetensors file, for tools that compare numbers.

use std::io::{BufWriter, Write};
use std::path::Path;

use coli_base::{Error, Result};
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use tempfile::NamedTempFile;

/// A tensor to write.
#[derive(Debug, Clone)]
pub struct F32Tensor<'a> {
    /// Its name; each only once in a file.
    pub name: String,
    /// Dimensions, outermost first.
    pub shape: Vec<usize>,
    /// As many numbers as the shape says.
    pub data: &'a [f32],
}

/// Writes `tensors` to `path`. An existing file is replaced whole, or left as it was when anything fails.
pub fn write_safetensors(path: &Path, tensors: &[F32Tensor<'_>]) -> Result<()> {
    let fail = |error: &dyn std::fmt::Display| Error::run(format!("`{}`: {error}", path.display()));
    let header = header(tensors).map_err(|error| fail(&error))?;
    let temporary = temporary_beside(path).map_err(|error| fail(&error))?;
    write_all(&temporary, &header, tensors).map_err(|error| fail(&error))?;
    temporary.persist(path).map_err(|error| fail(&error.error))?;
    Ok(())
}

/// The length and the JSON, padded so that the tensors start at a multiple of 8.
fn header(tensors: &[F32Tensor<'_>]) -> std::result::Result<Vec<u8>, String> {
    let mut infos: Vec<(String, TensorInfo)> = Vec::new();
    let mut end = 0;
    for tensor in tensors {
        if infos.iter().any(|(name, _)| *name == tensor.name) {
            return Err(format!("two tensors are named `{}`", tensor.name));
        }
        let start = end;
        end += size_of_val(tensor.data);
        infos.push((tensor.name.clone(), TensorInfo { dtype: Dtype::F32, shape: tensor.shape.clone(), data_offsets: (start, end) }));
    }
    let metadata = Metadata::new(None, infos).map_err(|error| error.to_string())?;
    let mut json = serde_json::to_vec(&metadata).map_err(|error| error.to_string())?;
    json.resize(json.len().next_multiple_of(8), b' ');
    let mut header = (json.len() as u64).to_le_bytes().to_vec();
    header.append(&mut json);
    Ok(header)
}

/// A file in the folder of `path`, so that renaming it cannot cross file systems.
fn temporary_beside(path: &Path) -> std::io::Result<NamedTempFile> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".coli-");
    // A temporary file is private by default; this one becomes an ordinary file, and the process's mask applies.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

fn write_all(temporary: &NamedTempFile, header: &[u8], tensors: &[F32Tensor<'_>]) -> std::io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, temporary.as_file());
    out.write_all(header)?;
    for number in tensors.iter().flat_map(|tensor| tensor.data) {
        out.write_all(&number.to_le_bytes())?;
    }
    out.flush()?;
    // Before the rename: after a crash the name must not stand for a file without its bytes.
    temporary.as_file().sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::SafeTensors;

    #[test]
    fn what_is_written_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.safetensors");
        std::fs::write(&path, "old").unwrap();
        let logits = F32Tensor { name: "logits".into(), shape: vec![2, 3], data: &[0.0, -1.5, 2.0, f32::MAX, 1e-40, -0.0] };
        let hidden = F32Tensor { name: "hidden.0".into(), shape: vec![1], data: &[7.0] };
        write_safetensors(&path, &[logits.clone(), hidden]).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let read = file.tensor("logits").unwrap();
        let numbers: Vec<u32> = read.data().chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
        assert_eq!((read.shape(), numbers), (&[2, 3][..], logits.data.iter().map(|x| x.to_bits()).collect()));
        assert_eq!(file.tensor("hidden.0").unwrap().data(), 7f32.to_le_bytes());
        assert_eq!(file.len(), 2);
    }

    #[test]
    fn a_failure_leaves_the_old_file_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.safetensors");
        std::fs::write(&path, "old").unwrap();
        let one = |name: &str, shape: &[usize]| F32Tensor { name: name.into(), shape: shape.to_vec(), data: &[1.0, 2.0] };
        assert!(write_safetensors(&path, &[one("a", &[3])]).is_err());
        assert!(write_safetensors(&path, &[one("a", &[2]), one("a", &[2])]).unwrap_err().text.contains("`a`"));
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert!(write_safetensors(dir.path(), &[one("a", &[2])]).is_err());
        assert!(write_safetensors(&dir.path().join("none/out"), &[one("a", &[2])]).unwrap_err().text.contains("none"));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_an_ordinary_one() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (ours, plain) = (dir.path().join("ours"), dir.path().join("plain"));
        write_safetensors(&ours, &[]).unwrap();
        std::fs::write(&plain, "").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&plain));
    }
}
