//! Owned memory whose start is aligned for every kernel and every device import that reads it.

use bytemuck::allocation::try_zeroed_vec;
use coli_base::units::Bytes;
use coli_base::{Error, Result};

/// A cache line, and the widest vector register.
pub(crate) const ALIGN: usize = 64;

/// Bytes that start at a multiple of [`ALIGN`].
#[derive(Debug)]
pub(crate) struct AlignedBytes {
    /// Longer than asked for by up to one alignment; never grows, so what it points to never moves.
    block: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBytes {
    /// So many zero bytes. They take no memory until they are written, and too many are an error, not an abort.
    pub(crate) fn zeroed(len: u64) -> Result<Self> {
        let too_large = || Error::run(format!("not enough memory: {} of weights", Bytes(len)));
        let len = usize::try_from(len).map_err(|_| too_large())?;
        let padded = len.checked_add(ALIGN - 1).ok_or_else(too_large)?;
        let block = try_zeroed_vec::<u8>(padded).map_err(|()| too_large())?;
        let start = block.as_ptr().addr().wrapping_neg() % ALIGN;
        Ok(Self { block, start, len })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.block[self.start..][..self.len]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.block[self.start..][..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_as_long_as_asked() {
        for len in [0u64, 1, 63, 64, 65, 1000, 1 << 22] {
            let mut memory = AlignedBytes::zeroed(len).unwrap();
            assert_eq!(memory.bytes().as_ptr().addr() % ALIGN, 0);
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
