//! Buffers: ranges of blocks, with an address for kernels and, where the host takes part, its view of them.
#![allow(unsafe_code)]

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ash::vk;

use crate::device::{Inner, Retired, Taken};
use crate::fault::{Fault, Result};
use crate::memory::Pool;
use crate::memory::pools::Range;

/// A range of device memory, which clones share. Dropping the last one gives the memory back once every submit made by then has ended.
#[derive(Clone)]
pub struct Buffer {
    pub(crate) hold: Arc<BufferHold>,
}

/// What keeps the range.
pub(crate) struct BufferHold {
    pub(crate) inner: Arc<Inner>,
    range: Option<Range>,
    pub(crate) raw: vk::Buffer,
    /// The memory that it and its block lie in, from the same offset on.
    pub(crate) memory: vk::DeviceMemory,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    address: u64,
    mapped: Option<NonNull<u8>>,
    pool: Pool,
}

// SAFETY: the pointer is to mapped device memory, which no thread owns. It is copied to and from as bytes and as atomic words, and no
// reference to it is ever made; whoever reads while another thread or the device writes gets some of either.
unsafe impl Send for BufferHold {}
// SAFETY: as above.
unsafe impl Sync for BufferHold {}

/// Something that commands can name: a buffer, or the host's pages.
pub trait Region {
    /// Where it is, and what keeps it.
    #[doc(hidden)]
    fn region(&self) -> Place;
}

/// A region's place.
#[doc(hidden)]
#[derive(Clone)]
pub struct Place {
    pub(crate) raw: vk::Buffer,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) device: *const Inner,
    pub(crate) hold: Arc<dyn Any + Send + Sync>,
}

impl Place {
    /// Where `bytes` at `at` begin in the Vulkan buffer, if they lie inside and on this device.
    pub(crate) fn part(&self, device: &Inner, at: u64, bytes: u64) -> Result<u64> {
        if !std::ptr::eq(self.device, device) {
            return Err(Fault::wrong("a buffer of another device cannot be used here"));
        }
        inside(self.bytes, at, bytes)?;
        Ok(self.offset + at)
    }
}

fn inside(whole: u64, at: u64, bytes: u64) -> Result<()> {
    match at.checked_add(bytes) {
        Some(end) if end <= whole => Ok(()),
        _ => Err(Fault::wrong(format!("{bytes} bytes at {at} are not inside a buffer of {whole}"))),
    }
}

impl Buffer {
    pub(crate) fn new(inner: &Arc<Inner>, pool: Pool, bytes: u64) -> Result<Self> {
        let (range, Taken { address, raw, memory, mapped }) = inner.take(pool, bytes)?;
        let offset = range.offset();
        // The offset lies within the mapping, which is of the whole block.
        let mapped = mapped.and_then(|start| NonNull::new(start.as_ptr().wrapping_add(usize::try_from(offset).ok()?)));
        let address = address + offset;
        let hold = BufferHold { inner: Arc::clone(inner), range: Some(range), raw, memory, offset, bytes, address, mapped, pool };
        Ok(Self { hold: Arc::new(hold) })
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.hold.bytes
    }

    /// Its device address, a multiple of 256.
    pub fn address(&self) -> u64 {
        self.hold.address
    }

    /// Its pool.
    pub fn pool(&self) -> Pool {
        self.hold.pool
    }

    /// Whether the host sees it.
    pub fn is_mapped(&self) -> bool {
        self.hold.mapped.is_some()
    }

    /// Copies bytes into it through its mapping. The next submit sees them; one in flight may.
    pub fn write(&self, at: u64, from: &[u8]) -> Result<()> {
        let to = self.pointer(at, from.len())?;
        // SAFETY: `pointer` has checked that so many bytes lie inside the mapping, which no Rust object overlaps.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), from.len()) };
        Ok(())
    }

    /// Copies bytes out of it through its mapping. Only what a wait has ended is sure to be there.
    pub fn read(&self, at: u64, to: &mut [u8]) -> Result<()> {
        let from = self.pointer(at, to.len())?;
        // SAFETY: as in `write`, the other way round.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    /// A word of it, as the device last wrote it; for words that the host watches.
    pub fn word(&self, at: u64) -> Result<u32> {
        Ok(self.atomic(at)?.load(Ordering::Acquire))
    }

    /// Writes a word.
    pub fn set_word(&self, at: u64, value: u32) -> Result<()> {
        self.atomic(at)?.store(value, Ordering::Release);
        Ok(())
    }

    fn atomic(&self, at: u64) -> Result<&AtomicU32> {
        if !at.is_multiple_of(4) {
            return Err(Fault::wrong(format!("a word lies at a multiple of 4, not at {at}")));
        }
        let pointer = self.pointer(at, 4)?;
        // SAFETY: the word lies inside the mapping, which lives as long as this buffer, at a multiple of 4: a mapping begins at a page, a
        // buffer at a multiple of 256. Others access it as bytes only by `write` and `read`, whose races the type of the memory allows.
        Ok(unsafe { AtomicU32::from_ptr(pointer.as_ptr().cast()) })
    }

    fn pointer(&self, at: u64, bytes: usize) -> Result<NonNull<u8>> {
        let Some(start) = self.hold.mapped else {
            return Err(Fault::wrong(format!(
                "the host does not see memory of {}: upload to it or download from it",
                self.hold.pool.name()
            )));
        };
        inside(self.hold.bytes, at, bytes as u64)?;
        let at = usize::try_from(at).map_err(|_| Fault::wrong("an offset that no pointer holds"))?;
        NonNull::new(start.as_ptr().wrapping_add(at)).ok_or_else(|| Fault::wrong("an offset that no pointer holds"))
    }
}

impl Region for Buffer {
    fn region(&self) -> Place {
        let BufferHold { raw, offset, bytes, .. } = *self.hold;
        Place { raw, offset, bytes, device: Arc::as_ptr(&self.hold.inner), hold: Arc::clone(&self.hold) as _ }
    }
}

impl Drop for BufferHold {
    fn drop(&mut self) {
        if let Some(range) = self.range.take() {
            self.inner.retire(Retired::Range(range));
        }
    }
}
