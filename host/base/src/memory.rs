//! What the process uses, and what is left.

use crate::units::Bytes;
use crate::{Error, Result};

/// The most memory that this process has had resident so far, in bytes; `None` where the system does not say.
pub fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Memory that a process may still take without the system running out, in bytes; `None` where the system does not say.
pub fn available_bytes() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// An error where the process cannot have so much more memory at once, because its address space is bounded, say. The memory is given back:
/// this is for work that would end the process where it lacks memory, and that has no error of its own.
pub fn probe(bytes: u64, what: &str) -> Result<()> {
    let mut room: Vec<u8> = Vec::new();
    let reserved = usize::try_from(bytes).ok().and_then(|len| room.try_reserve_exact(len).ok());
    // Memory that nobody looks at is not asked for at all.
    std::hint::black_box(&room);
    reserved.ok_or_else(|| Error::run(format!("not enough memory: {} to {what}", Bytes(bytes))))
}

#[cfg(test)]
mod probe_tests {
    #[test]
    fn what_cannot_be_had_is_an_error() {
        assert_eq!(super::probe(1 << 20, "work"), Ok(()));
        assert_eq!(super::probe(1 << 62, "work").unwrap_err().text, "not enough memory: 4194304.0 TiB to work");
        assert!(super::probe(u64::MAX, "work").is_err());
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn the_peak_grows_with_what_is_touched() {
        let before = super::peak_bytes().unwrap();
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        let after = super::peak_bytes().unwrap();
        assert!(super::available_bytes().unwrap() > 0);
        assert!(after >= before + (32 << 20), "{before} -> {after} with {} more", block.len());
    }
}
