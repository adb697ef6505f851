//! Owned memory whose start is aligned for every kernel and every device import that reads it.

use coli_base::units::Bytes;
use coli_base::{Error, Result};
use memmap2::{MmapMut, MmapOptions};

/// A cache line, and the widest vector register.
pub(crate) const ALIGN: usize = 64;

/// Bytes that start at a page.
#[derive(Debug)]
pub(crate) struct AlignedBytes {
    /// `None` where there are no bytes.
    block: Option<MmapMut>,
}

impl AlignedBytes {
    /// So many zero bytes. They take no memory until they are written, and too many are an error, not an abort.
    pub(crate) fn zeroed(len: u64) -> Result<Self> {
        let too_large = || Error::run(format!("not enough memory: {} of weights", Bytes(len)));
        let len = usize::try_from(len).ok().filter(|len| *len <= isize::MAX as usize).ok_or_else(too_large)?;
        if len == 0 {
            return Ok(Self { block: None });
        }
        let block = MmapOptions::new().len(len).map_anon().map_err(|_| too_large())?;
        // Weights are read from end to end for every token: with pages of 4 KiB, half of the time goes to finding them.
        #[cfg(target_os = "linux")]
        let _ = block.advise(memmap2::Advice::HugePage);
        Ok(Self { block: Some(block) })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.block.as_deref().unwrap_or_default()
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.block.as_deref_mut().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_as_long_as_asked() {
        for len in [0u64, 1, 63, 64, 65, 1000, 1 << 22] {
            let mut memory = AlignedBytes::zeroed(len).unwrap();
            assert!(len == 0 || memory.bytes().as_ptr().addr().is_multiple_of(ALIGN));
            assert_eq!(memory.bytes_mut().len() as u64, len);
            assert!(memory.bytes().iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn too_much_is_an_error() {
        for len in [u64::MAX, u64::MAX / 2, 1 << 62] {
            let error = AlignedBytes::zeroed(len).unwrap_err();
            assert_eq!(error.kind, coli_base::Kind::Run);
            assert!(error.text.starts_with("not enough memory: "), "{error}");
        }
    }
}
