//! What the process itself uses.

/// The most memory that this process has had resident so far, in bytes; `None` where the system does not say.
pub fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
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
        assert!(after >= before + (32 << 20), "{before} -> {after} with {} more", block.len());
    }
}
