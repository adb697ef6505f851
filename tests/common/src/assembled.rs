//! Files that are stored in parts, to keep the repository small: what they share with a safetensors file beside them is taken from there.
//!
//! `model.gguf.json` has the whole file's SHA-256 and its parts in order, each as name, start and length: of a tensor's bytes, or without a
//! name of `literals.bin`.

use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use sha2::{Digest as _, Sha256};

use crate::{built, fixture};

/// The file that `folder` has the parts of, made from them and the safetensors file of `beside`; `None` where there are no parts.
///
/// # Panics
/// When the parts do not make the file that they were made from.
pub fn gguf(folder: &Path, beside: &Path) -> Option<PathBuf> {
    let list = folder.join("model.gguf.json");
    if !list.is_file() {
        return None;
    }
    let read = |path: &Path| std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (list, literals) = (fixture::json(&list), read(&folder.join("literals.bin")));
    let stored = read(&beside.join("model.safetensors"));
    let tensors = SafeTensors::deserialize(&stored).unwrap_or_else(|error| panic!("{}: {error}", beside.display()));
    let mut whole = Vec::new();
    for part in list["parts"].as_array().into_iter().flatten() {
        let at = |index: usize| part[index].as_u64().unwrap_or_else(|| panic!("{part}")) as usize;
        let name = part[0].as_str().unwrap_or_default();
        let bytes =
            if name.is_empty() { &literals[..] } else { tensors.tensor(name).unwrap_or_else(|error| panic!("{name}: {error}")).data() };
        whole.extend_from_slice(&bytes[at(1)..][..at(2)]);
    }
    let sum: String = Sha256::digest(&whole).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(Some(sum.as_str()), list["sha256"].as_str(), "{}: the parts make another file", folder.display());
    Some(written(&folder.file_name().unwrap_or_default().to_string_lossy(), &whole))
}

/// Beside the built program, where every test of a run finds it. Several may write it at once, each the same bytes.
fn written(name: &str, bytes: &[u8]) -> PathBuf {
    let folder = built::program().with_file_name("assembled").join(name);
    let path = folder.join("model.gguf");
    let known = std::fs::read(&path).is_ok_and(|known| known == bytes);
    if !known {
        let fail = |error: std::io::Error| panic!("{}: {error}", path.display());
        std::fs::create_dir_all(&folder).unwrap_or_else(fail);
        let temporary = folder.join(format!("{}-{:?}.part", std::process::id(), std::thread::current().id()));
        std::fs::write(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, &path)).unwrap_or_else(fail);
    }
    path
}
