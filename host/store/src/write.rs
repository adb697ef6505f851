//! Writes f32 tensors to a safetensors file, for tools that compare numbers.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

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

/// A file that is being made beside the one that it will replace. What is wrong with the path shows when it is made, before the work that
/// gives its contents. Dropped without [`OutFile::write`], it leaves everything as it was.
pub struct OutFile {
    path: PathBuf,
    temporary: NamedTempFile,
}

impl OutFile {
    /// Starts a file at `path`. A link is followed, and an existing file must be a regular one; it keeps its permissions.
    pub fn create(path: &Path) -> Result<Self> {
        let shown = path.display();
        let usage = |what: &dyn std::fmt::Display| Error::usage(format!("`{shown}`: {what}"));
        let path = match path.symlink_metadata() {
            // A link that leads nowhere is not followed to a file that would be made somewhere else.
            Ok(_) => path.canonicalize().map_err(|error| usage(&error))?,
            Err(_) => path.to_path_buf(),
        };
        let existing = std::fs::metadata(&path).ok();
        match &existing {
            Some(facts) if facts.is_dir() => return Err(usage(&"it is a folder")),
            Some(facts) if !facts.is_file() => return Err(usage(&"it is not a regular file")),
            _ => {}
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.is_dir() {
            return Err(usage(&format_args!("folder `{}` does not exist", folder.display())));
        }
        let temporary = temporary_in(folder).map_err(|error| Error::run(format!("`{shown}`: {error}")))?;
        if let Some(facts) = existing {
            // Where permissions cannot be kept the file is still written; they are the mask's then.
            let _ = std::fs::set_permissions(temporary.path(), facts.permissions());
        }
        Ok(Self { path, temporary })
    }

    /// Where the file will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the tensors and puts the file in place. An existing file is replaced whole, or left as it was when anything fails.
    pub fn write(self, tensors: &[F32Tensor<'_>]) -> Result<()> {
        let fail = |error: &dyn std::fmt::Display| Error::run(format!("`{}`: {error}", self.path.display()));
        let header = header(tensors).map_err(|error| fail(&error))?;
        write_all(&self.temporary, &header, tensors).map_err(|error| fail(&error))?;
        self.temporary.persist(&self.path).map_err(|error| fail(&error.error))?;
        Ok(())
    }
}

/// Writes `tensors` to `path` in one go.
pub fn write_safetensors(path: &Path, tensors: &[F32Tensor<'_>]) -> Result<()> {
    OutFile::create(path)?.write(tensors)
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

/// A file in the folder of the one that it will replace, so that renaming it cannot cross file systems.
fn temporary_in(folder: &Path) -> std::io::Result<NamedTempFile> {
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
    fn links_are_followed_permissions_kept_and_other_kinds_refused() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("real"), "old").unwrap();
        std::fs::set_permissions(at("real"), std::fs::Permissions::from_mode(0o600)).unwrap();
        symlink("real", at("link")).unwrap();
        write_safetensors(&at("link"), &[]).unwrap();
        assert!(at("link").symlink_metadata().unwrap().is_symlink());
        assert_ne!(std::fs::read(at("real")).unwrap(), b"old");
        assert_eq!(std::fs::metadata(at("real")).unwrap().permissions().mode() & 0o777, 0o600);
        symlink("nowhere", at("dangling")).unwrap();
        for path in [at("dangling"), "/dev/null".into(), dir.path().into(), at("none/out")] {
            let error = write_safetensors(&path, &[]).unwrap_err();
            assert_eq!(error.kind, coli_base::Kind::Usage, "{error}");
        }
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
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
