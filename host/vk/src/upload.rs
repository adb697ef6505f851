//! Uploads: through a mapping, through two slots of staging memory that fill while the other copies, or straight from the host's pages.
//! Whichever way, the bytes are there when the call returns.
#![allow(unsafe_code)]

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use ash::vk;

use crate::blocks::RawBlock;
use crate::buffer::{Buffer, Region};
use crate::commands::Commands;
use crate::device::{Device, Inner};
use crate::fault::{Fault, Result, failed};
use crate::import::RawImport;
use crate::memory::Pool;

/// Bytes of a slot.
const SLOT: u64 = 16 << 20;

/// Pages are imported for one copy from this many bytes on; below, copying them is as fast as importing them.
const IMPORT_FROM: usize = 1 << 20;

/// Bytes for a buffer.
pub struct Piece<'a> {
    /// The buffer.
    pub to: &'a Buffer,
    /// Where in it.
    pub at: u64,
    /// The bytes.
    pub from: &'a [u8],
}

/// What uploads did so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UploadReport {
    /// Bytes written through mappings.
    pub mapped: u64,
    /// Bytes through staging memory.
    pub staged: u64,
    /// Bytes copied by the device from the host's pages.
    pub imported: u64,
    /// Pages that the driver would not import.
    pub refused: u64,
    /// Submits.
    pub submits: u64,
}

/// The staging memory and the command buffers of uploads. One upload at a time.
pub(crate) struct Uploader {
    pool: vk::CommandPool,
    slots: [Slot; 2],
}

struct Slot {
    commands: vk::CommandBuffer,
    fence: vk::Fence,
    block: RawBlock,
    in_flight: bool,
}

/// One submit in the making.
#[derive(Default)]
struct Batch {
    used: u64,
    copies: Vec<(vk::Buffer, vk::Buffer, vk::BufferCopy)>,
}

impl Device {
    /// Copies bytes into buffers; several pieces share submits. No submit in flight may use those parts of the buffers. When it fails with
    /// anything but a loss, what the buffers hold is unknown, and everything else is as before.
    pub fn upload(&self, pieces: &[Piece<'_>]) -> Result<()> {
        let inner = &self.inner;
        inner.check()?;
        for piece in pieces {
            piece.to.region().part(inner, piece.at, piece.from.len() as u64)?;
        }
        let (mapped, staged): (Vec<&Piece<'_>>, Vec<&Piece<'_>>) = pieces.iter().partition(|piece| piece.to.is_mapped());
        for piece in &mapped {
            piece.to.write(piece.at, piece.from)?;
        }
        inner.count(|report| report.mapped += mapped.iter().map(|piece| piece.from.len() as u64).sum::<u64>());
        if staged.is_empty() {
            return Ok(());
        }
        let mut uploader = inner.uploader.lock().unwrap_or_else(PoisonError::into_inner);
        if uploader.is_none() {
            *uploader = Some(Uploader::new(inner)?);
        }
        let Some(uploader) = uploader.as_mut() else { unreachable!("it was made above") };
        // The imports live until every copy has ended: those of a lost device are left alone, since it may still read them.
        let mut imports = Vec::new();
        let sent = uploader.send(inner, &staged, &mut imports);
        let ended = uploader.finish(inner);
        if inner.note(ended.as_ref().map_err(Clone::clone).map(|_| ())).is_ok() {
            imports.into_iter().for_each(|import: RawImport| import.destroy(&inner.raw));
        } else {
            imports.into_iter().for_each(std::mem::forget);
        }
        inner.note(sent.and(ended))
    }

    /// Copies bytes out of a buffer, after every submit before.
    pub fn download(&self, from: &Buffer, at: u64, to: &mut [u8]) -> Result<()> {
        from.region().part(&self.inner, at, to.len() as u64)?;
        if from.is_mapped() && from.pool() == Pool::Readback {
            return from.read(at, to);
        }
        let most = SLOT.min(to.len() as u64);
        let back = self.buffer(Pool::Readback, most.max(4))?;
        let mut at = at;
        for part in to.chunks_mut(usize::try_from(most.max(1)).unwrap_or(usize::MAX)) {
            let bytes = part.len() as u64;
            let mut copy = Commands::record(self, 0, |recorder| recorder.copy(from, at, &back, 0, bytes))?;
            copy.submit()?;
            copy.wait()?;
            back.read(0, part)?;
            at += bytes;
        }
        Ok(())
    }
}

impl Inner {
    fn count(&self, change: impl FnOnce(&mut UploadReport)) {
        change(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Uploader {
    fn new(inner: &Inner) -> Result<Self> {
        let pool = inner.command_pool(inner.queues.upload.family)?;
        let mut slots = Vec::with_capacity(2);
        for _ in 0..2 {
            match Slot::new(inner, pool) {
                Ok(slot) => slots.push(slot),
                Err(fault) => {
                    slots.into_iter().for_each(|slot| slot.destroy(inner));
                    // SAFETY: nothing recorded in it was ever submitted.
                    unsafe { inner.raw.destroy_command_pool(pool, None) };
                    return Err(fault);
                }
            }
        }
        let Ok(slots) = slots.try_into() else { unreachable!("there are two") };
        Ok(Self { pool, slots })
    }

    pub(crate) fn destroy(self, inner: &Inner) {
        self.slots.into_iter().for_each(|slot| slot.destroy(inner));
        // SAFETY: the device is idle, or lost.
        unsafe { inner.raw.destroy_command_pool(self.pool, None) };
    }

    /// Sends all pieces; the last slots are still in flight afterwards.
    fn send(&mut self, inner: &Inner, pieces: &[&Piece<'_>], imports: &mut Vec<RawImport>) -> Result<()> {
        let (mut at, mut batch) = (0, Batch::default());
        for piece in pieces {
            let place = piece.to.region();
            let offset = place.part(inner, piece.at, piece.from.len() as u64)?;
            let direct = import_part(inner, piece.from, imports);
            if direct > 0
                && let Some(import) = imports.last()
            {
                batch.copies.push((import.buffer, place.raw, region(0, offset, direct)));
                inner.count(|report| report.imported += direct);
            }
            let mut done = direct;
            while done < piece.from.len() as u64 {
                if batch.used == SLOT {
                    self.flush(inner, at, &mut batch)?;
                    at = 1 - at;
                }
                // The slot's earlier copies must have ended before its memory is written again.
                self.slots[at].wait(inner)?;
                let bytes = (piece.from.len() as u64 - done).min(SLOT - batch.used);
                let start = usize::try_from(done).unwrap_or(usize::MAX);
                let part = &piece.from[start..start + usize::try_from(bytes).unwrap_or(0)];
                self.slots[at].fill(batch.used, part);
                batch.copies.push((self.slots[at].block.buffer, place.raw, region(batch.used, offset + done, bytes)));
                batch.used = (batch.used + bytes).next_multiple_of(16);
                done += bytes;
                inner.count(|report| report.staged += bytes);
            }
        }
        self.flush(inner, at, &mut batch)
    }

    fn flush(&mut self, inner: &Inner, at: usize, batch: &mut Batch) -> Result<()> {
        if batch.copies.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(batch);
        self.slots[at].wait(inner)?;
        self.slots[at].submit(inner, &batch)?;
        inner.count(|report| report.submits += 1);
        Ok(())
    }

    /// Waits for everything that was sent.
    fn finish(&mut self, inner: &Inner) -> Result<()> {
        let [one, two] = &mut self.slots;
        let first = one.wait(inner);
        two.wait(inner).and(first)
    }
}

fn region(from: u64, to: u64, bytes: u64) -> vk::BufferCopy {
    vk::BufferCopy { src_offset: from, dst_offset: to, size: bytes }
}

/// Imports the whole pages at the beginning of bytes, where that is possible and worth it; how many bytes that is.
fn import_part(inner: &Inner, from: &[u8], imports: &mut Vec<RawImport>) -> u64 {
    let Some(align) = inner.import_align() else { return 0 };
    let whole = from.len() / align * align;
    if whole < IMPORT_FROM || from.as_ptr().align_offset(align) != 0 {
        return 0;
    }
    // SAFETY: the bytes are borrowed, so nobody writes or frees them until the upload returns, and it returns after its copies have ended
    // and the import is destroyed; or, with the device lost, leaves the import alone.
    match unsafe { inner.import(from.as_ptr(), whole) } {
        Ok(import) => {
            imports.push(import);
            whole as u64
        }
        Err(_) => {
            inner.count(|report| report.refused += 1);
            0
        }
    }
}

impl Slot {
    fn new(inner: &Inner, pool: vk::CommandPool) -> Result<Self> {
        let commands = inner.command_buffer(pool)?;
        let fence = inner.fence()?;
        match inner.make_block(inner.staging, SLOT) {
            Ok(block) => Ok(Self { commands, fence, block, in_flight: false }),
            Err(fault) => {
                // SAFETY: it was made here and never submitted.
                unsafe { inner.raw.destroy_fence(fence, None) };
                Err(fault)
            }
        }
    }

    fn destroy(self, inner: &Inner) {
        // SAFETY: the device is idle, or lost.
        unsafe { inner.raw.destroy_fence(self.fence, None) };
        inner.drop_block(self.block);
    }

    /// Writes bytes into the slot, which is not in flight.
    fn fill(&mut self, at: u64, bytes: &[u8]) {
        let Some(start) = self.block.mapped else { unreachable!("staging blocks are mapped") };
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let to = start.as_ptr().wrapping_add(at);
        // SAFETY: `send` keeps offset and length inside the slot, which only this uploader has, under its lock.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    fn submit(&mut self, inner: &Inner, batch: &Batch) -> Result<()> {
        let begin = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the command buffer is not in flight, and its pool allows it to be recorded anew.
        unsafe { inner.raw.begin_command_buffer(self.commands, &begin) }.map_err(failed("vkBeginCommandBuffer"))?;
        for (from, to, copy) in &batch.copies {
            // SAFETY: both ranges lie inside their buffers, as `part` and the slot's size have it, and both live until the upload ends.
            unsafe { inner.raw.cmd_copy_buffer(self.commands, *from, *to, std::slice::from_ref(copy)) };
        }
        // SAFETY: it is being recorded.
        unsafe { inner.raw.end_command_buffer(self.commands) }.map_err(failed("vkEndCommandBuffer"))?;
        // SAFETY: the fence is not in flight.
        unsafe { inner.raw.reset_fences(&[self.fence]) }.map_err(failed("vkResetFences"))?;
        let (commands, signals) = ([self.commands], [inner.uploads]);
        let queue = inner.upload.lock().unwrap_or_else(PoisonError::into_inner);
        // Only uploads signal it, one at a time.
        let value = [inner.uploaded.load(Ordering::Acquire) + 1];
        let mut timeline = vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&value);
        let info = vk::SubmitInfo::default().command_buffers(&commands).signal_semaphores(&signals).push_next(&mut timeline);
        // SAFETY: the lock keeps others off the queue; everything that `info` names is of this device and lives until the fence.
        unsafe { inner.raw.queue_submit(*queue, &[info], self.fence) }.map_err(failed("vkQueueSubmit"))?;
        inner.uploaded.store(value[0], Ordering::Release);
        self.in_flight = true;
        Ok(())
    }

    fn wait(&mut self, inner: &Inner) -> Result<()> {
        if self.in_flight {
            inner.wait_fence(self.fence).map_err(|fault| match fault {
                Fault::Lost { why, .. } => Fault::Lost { during: "waiting for an upload", why },
                other => other,
            })?;
            self.in_flight = false;
        }
        Ok(())
    }
}
