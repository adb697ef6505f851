//! What the process uses, and what is left.

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
