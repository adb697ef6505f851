//! Reading small files that someone else made.

use std::io::Read as _;
use std::path::Path;

use crate::{Error, Result};

/// The bytes of a regular file of at most `bytes_max`; `None` where there is no such file. Anything but a regular file is refused before it
/// is opened: opening a pipe would wait for its other end, and a device need not end.
pub fn read_bounded(path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>> {
    let refuse = |what: &dyn std::fmt::Display| Error::refused(format!("`{}`: {what}", path.display()));
    let fail = |error: std::io::Error| Error::of_file(&error, format!("`{}`: {error}", path.display()));
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && path.symlink_metadata().is_err() => return Ok(None),
        Err(error) => return Err(fail(error)),
        Ok(facts) if !facts.is_file() => return Err(refuse(&"it is not a regular file")),
        Ok(_) => {}
    }
    let file = std::fs::File::open(path).map_err(fail)?;
    let mut bytes = Vec::new();
    // One byte more than allowed tells a file that is too large, even one that grows or whose length says nothing.
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(fail)?;
    match bytes.len() as u64 > bytes_max {
        true => Err(refuse(&format_args!("it has more than {bytes_max} bytes"))),
        false => Ok(Some(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::read_bounded;

    #[test]
    fn only_regular_files_within_the_bound_are_read() {
        let folder = std::env::temp_dir().join(format!("coli-base-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("file");
        std::fs::write(&file, "12345").unwrap();
        assert_eq!(read_bounded(&file, 5).unwrap().unwrap(), b"12345");
        assert!(read_bounded(&file, 4).unwrap_err().text.contains("more than 4 bytes"));
        assert!(read_bounded(&folder, 4).unwrap_err().text.contains("not a regular file"));
        assert_eq!(read_bounded(&folder.join("none"), 4), Ok(None));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("loop", folder.join("loop")).unwrap();
            assert!(read_bounded(&folder.join("loop"), 4).is_err());
            std::os::unix::fs::symlink("none", folder.join("dangling")).unwrap();
            assert!(read_bounded(&folder.join("dangling"), 4).is_err());
            assert!(read_bounded(std::path::Path::new("/dev/zero"), 4).unwrap_err().text.contains("not a regular file"));
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
