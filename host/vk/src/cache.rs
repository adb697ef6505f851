//! The file of compiled pipelines of one device under one driver. Its name and header follow from their identity, so a new driver starts a
//! new file; a file that is anything but whole is ignored, and replaced by the next one written.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::facts::DeviceFacts;
use crate::fault::{Fault, Result};

const MAGIC: &[u8; 8] = b"COLIVKPC";
/// The layout of the header; another one is another file.
const VERSION: u32 = 1;
/// Magic, version, vendor, device, driver's number and version, its two UUIDs, length and checksum of what follows.
const HEADER: usize = 8 + 4 * 5 + 32 + 8 + 8;
/// A file larger than this is not one of ours.
const MOST: u64 = 256 << 20;

/// The file in a folder that belongs to a device.
pub fn file(folder: &Path, device: &DeviceFacts) -> PathBuf {
    let identity = checksum(&header(device, &[])[8..HEADER - 16]);
    folder.join(format!("vk-{:04x}-{:04x}-{identity:016x}.bin", device.vendor, device.device))
}

/// The driver's data out of a file; `None` where there is no file or it is not whole and this device's.
pub fn read(path: &Path, device: &DeviceFacts) -> Option<Vec<u8>> {
    let length = fs::metadata(path).ok()?.len();
    if length > MOST {
        return None;
    }
    unwrap(&fs::read(path).ok()?, device)
}

/// Writes a file in place of the one there, whole or not at all.
pub fn write(path: &Path, device: &DeviceFacts, data: &[u8]) -> Result<()> {
    let failed =
        |what: &str, error: std::io::Error| Fault::wrong(format!("{}: the pipeline cache cannot be {what}: {error}", path.display()));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|error| failed("given a folder", error))?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed("written", error))?;
    let whole = header(device, data);
    file.write_all(&whole).and_then(|()| file.write_all(data)).map_err(|error| failed("written", error))?;
    file.persist(path).map_err(|error| failed("put in its place", error.error))?;
    Ok(())
}

/// The data behind a header that fits the device, its own length and checksum, and whose own header the driver will know.
fn unwrap(bytes: &[u8], device: &DeviceFacts) -> Option<Vec<u8>> {
    let data = bytes.get(HEADER..)?;
    (bytes[..HEADER] == header(device, data)[..] && is_drivers(data, device)).then(|| data.to_vec())
}

fn header(device: &DeviceFacts, data: &[u8]) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    #[allow(clippy::cast_sign_loss)] // The bits of an identity.
    let numbers = [VERSION, device.vendor, device.device, device.driver.id as u32, device.driver.version];
    header.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    header.extend(device.driver.uuid);
    header.extend(device.driver.cache_uuid);
    header.extend((data.len() as u64).to_le_bytes());
    header.extend(checksum(data).to_le_bytes());
    header
}

/// Whether data begins with Vulkan's own header (version one) of this device. Drivers must check it as well; not all do.
fn is_drivers(data: &[u8], device: &DeviceFacts) -> bool {
    let word = |at: usize| data.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let length = word(0).is_some_and(|length| length >= 32 && length as usize <= data.len());
    length
        && word(4) == Some(1)
        && word(8) == Some(device.vendor)
        && word(12) == Some(device.device)
        && data.get(16..32) == Some(&device.driver.cache_uuid[..])
}

/// FNV-1a over 64 bits: against accidents, not against people, who could as well replace the program.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> DeviceFacts {
        let mut device = DeviceFacts { vendor: 0x10de, device: 0x2335, ..DeviceFacts::default() };
        device.driver.cache_uuid = [7; 16];
        device
    }

    /// Data as a driver gives it.
    fn data(device: &DeviceFacts) -> Vec<u8> {
        let mut data: Vec<u8> = [32, 1, device.vendor, device.device].iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        data.extend(device.driver.cache_uuid);
        data.extend(b"compiled");
        data
    }

    #[test]
    fn what_was_written_is_read_and_nothing_else() {
        let (folder, device) = (tempfile::tempdir().unwrap(), device());
        let path = file(&folder.path().join("deep"), &device);
        assert_eq!(read(&path, &device), None);
        write(&path, &device, &data(&device)).unwrap();
        assert_eq!(read(&path, &device), Some(data(&device)));
        // Any flipped byte, any cut.
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut broken = whole.clone();
            broken[at] ^= 1;
            assert_eq!(unwrap(&broken, &device), None, "byte {at}");
            assert_eq!(unwrap(&whole[..at], &device), None, "cut at {at}");
        }
        fs::write(&path, b"nonsense").unwrap();
        assert_eq!(read(&path, &device), None);
        write(&path, &device, &data(&device)).unwrap();
        assert_eq!(read(&path, &device), Some(data(&device)));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no temporary file stays");
    }

    #[test]
    fn another_driver_has_another_file() {
        let (one, mut other) = (device(), device());
        other.driver.version += 1;
        assert_ne!(file(Path::new("a"), &one), file(Path::new("a"), &other));
        let mut bytes = header(&one, &data(&one));
        bytes.extend(data(&one));
        assert!(unwrap(&bytes, &one).is_some() && unwrap(&bytes, &other).is_none());
    }

    #[test]
    fn data_with_a_foreign_header_is_refused() {
        let (one, mut other) = (device(), device());
        other.driver.cache_uuid = [8; 16];
        let mut bytes = header(&one, &data(&other));
        bytes.extend(data(&other));
        assert_eq!(unwrap(&bytes, &one), None);
    }
}
