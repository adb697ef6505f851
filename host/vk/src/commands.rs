//! Commands: recorded once, submitted many times, waited for with proof ([`crate::wait`]).
//!
//! What changes from submit to submit lies in buffers; a recording holds addresses and sizes.
#![allow(unsafe_code)]

use std::any::Any;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use ash::vk;

use crate::buffer::{Buffer, Region};
use crate::device::{Device, Inner};
use crate::fault::{Fault, Result, failed};
use crate::memory::Pool;
use crate::pipeline::Pipeline;
use crate::wait::{RECEIPT, Seen, verdict};

/// Recorded commands. They run one submit at a time, in the order of submits of the whole device.
pub struct Commands {
    parts: Parts,
    keep: Vec<Arc<dyn Any + Send + Sync>>,
    /// The word that the last command writes.
    receipt: Buffer,
    stamps: u32,
    in_flight: Option<u64>,
}

/// The Vulkan objects of commands.
struct Parts {
    inner: Arc<Inner>,
    pool: vk::CommandPool,
    raw: vk::CommandBuffer,
    queries: vk::QueryPool,
}

/// Records commands.
pub struct Recorder<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) raw: vk::CommandBuffer,
    queries: vk::QueryPool,
    stamps: u32,
    stamped: u32,
    pub(crate) keep: Vec<Arc<dyn Any + Send + Sync>>,
}

const WORK: vk::PipelineStageFlags =
    vk::PipelineStageFlags::from_raw(vk::PipelineStageFlags::COMPUTE_SHADER.as_raw() | vk::PipelineStageFlags::TRANSFER.as_raw());
const WRITES: vk::AccessFlags =
    vk::AccessFlags::from_raw(vk::AccessFlags::SHADER_WRITE.as_raw() | vk::AccessFlags::TRANSFER_WRITE.as_raw());
const ACCESS: vk::AccessFlags = vk::AccessFlags::from_raw(
    vk::AccessFlags::SHADER_READ.as_raw()
        | vk::AccessFlags::TRANSFER_READ.as_raw()
        | WRITES.as_raw()
        | vk::AccessFlags::INDIRECT_COMMAND_READ.as_raw(),
);

impl Commands {
    /// Records commands, with room for so many timestamps (0 where none are wanted).
    pub fn record(device: &Device, stamps: u32, record: impl FnOnce(&mut Recorder<'_>) -> Result<()>) -> Result<Self> {
        let inner = &device.inner;
        inner.check()?;
        let receipt = device.buffer(Pool::Readback, 4)?;
        let parts = Parts::new(inner, stamps)?;
        // SAFETY: the command buffer is new.
        unsafe { inner.raw.begin_command_buffer(parts.raw, &vk::CommandBufferBeginInfo::default()) }
            .map_err(failed("vkBeginCommandBuffer"))?;
        let mut recorder = Recorder { inner, raw: parts.raw, queries: parts.queries, stamps, stamped: 0, keep: Vec::new() };
        if stamps > 0 {
            // SAFETY: the pool has so many queries, and none is active.
            unsafe { inner.raw.cmd_reset_query_pool(parts.raw, parts.queries, 0, stamps) };
        }
        // What submits before left must be seen, without a semaphore between them.
        let stages = WORK | vk::PipelineStageFlags::DRAW_INDIRECT;
        recorder.order(WORK, stages, WRITES, ACCESS);
        record(&mut recorder)?;
        recorder.finish(&receipt)?;
        let (stamped, keep) = (recorder.stamped, recorder.keep);
        // SAFETY: it is being recorded.
        unsafe { inner.raw.end_command_buffer(parts.raw) }.map_err(failed("vkEndCommandBuffer"))?;
        Ok(Self { parts, keep, receipt, stamps: stamped, in_flight: None })
    }

    /// Submits them.
    pub fn submit(&mut self) -> Result<()> {
        let inner = Arc::clone(&self.parts.inner);
        inner.check()?;
        if self.in_flight.is_some() {
            return Err(Fault::wrong("commands that are in flight cannot be submitted again"));
        }
        self.receipt.set_word(0, 0)?;
        let queue = inner.main.lock().unwrap_or_else(PoisonError::into_inner);
        let value = inner.submitted.load(Ordering::Acquire) + 1;
        let uploaded = inner.uploaded.load(Ordering::Acquire);
        // Uploads have ended by now; waiting for the newest makes what they wrote visible on this queue.
        let fresh = uploaded > inner.upload_seen.load(Ordering::Acquire);
        let (signals, values, waits, wanted) = ([inner.timeline], [value], [inner.uploads], [uploaded]);
        let (commands, stages) = ([self.parts.raw], [vk::PipelineStageFlags::ALL_COMMANDS]);
        let count = usize::from(fresh);
        let mut timeline =
            vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values).wait_semaphore_values(&wanted[..count]);
        let info = vk::SubmitInfo::default()
            .command_buffers(&commands)
            .signal_semaphores(&signals)
            .wait_semaphores(&waits[..count])
            .wait_dst_stage_mask(&stages[..count])
            .push_next(&mut timeline);
        // SAFETY: the lock keeps others off the queue, the commands are recorded and not in flight, and everything they use is kept.
        let sent = unsafe { inner.raw.queue_submit(*queue, &[info], vk::Fence::null()) }.map_err(failed("vkQueueSubmit"));
        inner.note(sent)?;
        inner.submitted.store(value, Ordering::Release);
        inner.upload_seen.store(uploaded, Ordering::Release);
        drop(queue);
        self.in_flight = Some(value);
        Ok(())
    }

    /// Whether a submit has ended, without waiting. What it proves is [`Commands::wait`]'s business.
    pub fn is_done(&self) -> Result<bool> {
        let Some(value) = self.in_flight else { return Ok(true) };
        Ok(self.parts.inner.counter()? >= value)
    }

    /// Waits for the submit. Success means that the device has run all of it: a lost device or a killed job is [`Fault::Lost`]. Without a
    /// submit in flight there is nothing to wait for.
    pub fn wait(&mut self) -> Result<()> {
        let Some(value) = self.in_flight else { return Ok(()) };
        let inner = Arc::clone(&self.parts.inner);
        let done = self.wait_for(&inner, value);
        // After a fault the device is given up. If it may still run, its objects are left alone.
        self.in_flight = None;
        inner.note(done)
    }

    fn wait_for(&self, inner: &Inner, value: u64) -> Result<()> {
        let started = Instant::now();
        let mut counter = inner.counter()?;
        while counter < value && started.elapsed() < inner.spin {
            std::hint::spin_loop();
            counter = inner.counter()?;
        }
        let nanoseconds = u64::try_from(inner.patience.as_nanos()).unwrap_or(u64::MAX);
        if counter < value {
            let (semaphores, values) = ([inner.timeline], [value]);
            let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
            // SAFETY: the semaphore is of this device and counts.
            let waited = unsafe { inner.raw.wait_semaphores(&info, nanoseconds) };
            waited.map_err(|result| inner.lost_in("vkWaitSemaphores", result))?;
            counter = inner.counter()?;
        }
        verdict(Seen { counter, value, receipt: self.receipt.word(0)? })
    }

    /// The timestamps of the last submit that was waited for, in nanoseconds from the first; `None` where the queue has none.
    pub fn stamps(&self) -> Result<Option<Vec<f64>>> {
        let (inner, facts) = (&self.parts.inner, &self.parts.inner.facts);
        let bits = facts.families.get(inner.queues.main.family as usize).map_or(0, |family| family.stamp_bits);
        if self.stamps == 0 || bits == 0 {
            return Ok(None);
        }
        if self.in_flight.is_some() {
            return Err(Fault::wrong("timestamps are read after a wait"));
        }
        let mut ticks = vec![0u64; self.stamps as usize];
        // SAFETY: the pool has at least so many queries, written by the submit that was waited for.
        unsafe { inner.raw.get_query_pool_results(self.parts.queries, 0, &mut ticks, vk::QueryResultFlags::TYPE_64) }
            .map_err(failed("vkGetQueryPoolResults"))?;
        let mask = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        let first = ticks[0];
        #[allow(clippy::cast_precision_loss)] // Ticks of one submit are few.
        let after = |tick: &u64| (tick.wrapping_sub(first) & mask) as f64 * f64::from(facts.stamp_ns);
        Ok(Some(ticks.iter().map(after).collect()))
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        // What runs keeps what it uses. A loss is noted on the device, and told by whoever uses it next.
        let _ = self.wait();
        self.keep.clear();
    }
}

impl Parts {
    fn new(inner: &Arc<Inner>, stamps: u32) -> Result<Self> {
        let pool = inner.command_pool(inner.queues.main.family)?;
        // Owned from here on, so that a failure below takes it apart.
        let mut parts = Self { inner: Arc::clone(inner), pool, raw: vk::CommandBuffer::null(), queries: vk::QueryPool::null() };
        parts.raw = inner.command_buffer(pool)?;
        if stamps > 0 {
            let info = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(stamps);
            // SAFETY: `info` is complete.
            parts.queries = unsafe { inner.raw.create_query_pool(&info, None) }.map_err(failed("vkCreateQueryPool"))?;
        }
        Ok(parts)
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        if self.inner.is_stuck() {
            return;
        }
        // SAFETY: the submit has ended, or the device is lost and has stopped; destroying nothing is allowed.
        unsafe { self.inner.raw.destroy_query_pool(self.queries, None) };
        // SAFETY: as above; the command buffer goes with its pool.
        unsafe { self.inner.raw.destroy_command_pool(self.pool, None) };
    }
}

impl Recorder<'_> {
    /// Runs a kernel over a grid of workgroups. Buffers that it reaches by address are named with [`Recorder::keep`].
    pub fn dispatch(&mut self, pipeline: &Pipeline, push: &[u8], groups: [u32; 3]) -> Result<()> {
        self.check_grid(groups)?;
        self.bind(pipeline, push)?;
        let [x, y, z] = groups;
        // SAFETY: a pipeline of this device is bound, its push constants are set, and the grid is within the limits.
        unsafe { self.inner.raw.cmd_dispatch(self.raw, x, y, z) };
        Ok(())
    }

    /// Runs a kernel over a grid that lies in a buffer as three words when it runs.
    pub fn dispatch_indirect(&mut self, pipeline: &Pipeline, push: &[u8], grid: &Buffer, at: u64) -> Result<()> {
        if !at.is_multiple_of(4) {
            return Err(Fault::wrong(format!("a grid lies at a multiple of 4, not at {at}")));
        }
        let place = grid.region();
        let offset = place.part(self.inner, at, 12)?;
        self.bind(pipeline, push)?;
        // SAFETY: as in `dispatch`; the three words lie inside the buffer, which is kept and made with the usage for it.
        unsafe { self.inner.raw.cmd_dispatch_indirect(self.raw, place.raw, offset) };
        self.keep.push(place.hold);
        Ok(())
    }

    pub(crate) fn check_grid(&self, groups: [u32; 3]) -> Result<()> {
        let most = self.inner.facts.limits.groups;
        if groups.iter().zip(most).any(|(&groups, most)| groups == 0 || groups > most) {
            return Err(Fault::wrong(format!("a grid of {groups:?} workgroups, the device takes {most:?}")));
        }
        Ok(())
    }

    fn bind(&mut self, pipeline: &Pipeline, push: &[u8]) -> Result<()> {
        let hold = &pipeline.hold;
        if !std::ptr::eq(Arc::as_ptr(&hold.inner), self.inner) {
            return Err(Fault::wrong("a pipeline of another device cannot be used here"));
        }
        if push.len() != hold.push as usize {
            return Err(Fault::wrong(format!("{} bytes of push constants, the kernel takes {}", push.len(), hold.push)));
        }
        // SAFETY: the pipeline is of this device and kept.
        unsafe { self.inner.raw.cmd_bind_pipeline(self.raw, vk::PipelineBindPoint::COMPUTE, hold.raw) };
        if !push.is_empty() {
            // SAFETY: so many bytes are what the pipeline's layout has.
            unsafe { self.inner.raw.cmd_push_constants(self.raw, hold.layout, vk::ShaderStageFlags::COMPUTE, 0, push) };
        }
        self.keep.push(Arc::clone(hold) as _);
        Ok(())
    }

    /// Keeps a region that kernels reach by its address for as long as the commands live.
    pub fn keep(&mut self, region: &impl Region) {
        self.keep.push(region.region().hold);
    }

    /// What kernels wrote is read by kernels after it. The cheap one: two microseconds on a large card, five where more is named.
    pub fn barrier(&mut self) {
        let stage = vk::PipelineStageFlags::COMPUTE_SHADER;
        self.order(stage, stage, vk::AccessFlags::SHADER_WRITE, vk::AccessFlags::SHADER_READ | vk::AccessFlags::SHADER_WRITE);
    }

    /// The same among kernels, copies, fills and grids.
    pub fn barrier_all(&mut self) {
        self.order(WORK, WORK | vk::PipelineStageFlags::DRAW_INDIRECT, WRITES, ACCESS);
    }

    /// Copies bytes between regions that do not overlap.
    pub fn copy(&mut self, from: &impl Region, from_at: u64, to: &impl Region, to_at: u64, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let (from, to) = (from.region(), to.region());
        let (src_offset, dst_offset) = (from.part(self.inner, from_at, bytes)?, to.part(self.inner, to_at, bytes)?);
        if from.raw == to.raw && src_offset.abs_diff(dst_offset) < bytes {
            return Err(Fault::wrong("a copy onto itself"));
        }
        let copy = [vk::BufferCopy { src_offset, dst_offset, size: bytes }];
        // SAFETY: both ranges lie inside their buffers and apart, and both are kept.
        unsafe { self.inner.raw.cmd_copy_buffer(self.raw, from.raw, to.raw, &copy) };
        self.keep.extend([from.hold, to.hold]);
        Ok(())
    }

    /// Fills words of a region.
    pub fn fill(&mut self, to: &impl Region, at: u64, bytes: u64, word: u32) -> Result<()> {
        let place = to.region();
        let offset = place.part(self.inner, at, bytes)?;
        if !offset.is_multiple_of(4) || !bytes.is_multiple_of(4) || bytes == 0 {
            return Err(Fault::wrong(format!("{bytes} bytes at {at} are not whole words")));
        }
        // SAFETY: the range lies inside the buffer, in whole words, and the buffer is kept.
        unsafe { self.inner.raw.cmd_fill_buffer(self.raw, place.raw, offset, bytes, word) };
        self.keep.push(place.hold);
        Ok(())
    }

    /// Takes the time once everything before it has run.
    pub fn stamp(&mut self) -> Result<()> {
        if self.stamped == self.stamps {
            return Err(Fault::wrong(format!("room was asked for {} timestamps", self.stamps)));
        }
        let bits = self.inner.facts.families.get(self.inner.queues.main.family as usize).map_or(0, |family| family.stamp_bits);
        if bits > 0 {
            let stage = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
            // SAFETY: the query is one of the pool's, reset at the beginning, and written once.
            unsafe { self.inner.raw.cmd_write_timestamp(self.raw, stage, self.queries, self.stamped) };
        }
        self.stamped += 1;
        Ok(())
    }

    /// The last commands: everything before is visible to the host, and then the receipt says that it ran.
    fn finish(&mut self, receipt: &Buffer) -> Result<()> {
        self.order(
            WORK,
            vk::PipelineStageFlags::TRANSFER | vk::PipelineStageFlags::HOST,
            WRITES,
            vk::AccessFlags::HOST_READ | vk::AccessFlags::TRANSFER_WRITE,
        );
        self.fill(receipt, 0, 4, RECEIPT)?;
        self.order(
            vk::PipelineStageFlags::TRANSFER,
            vk::PipelineStageFlags::HOST,
            vk::AccessFlags::TRANSFER_WRITE,
            vk::AccessFlags::HOST_READ,
        );
        Ok(())
    }

    fn order(&self, from: vk::PipelineStageFlags, to: vk::PipelineStageFlags, written: vk::AccessFlags, read: vk::AccessFlags) {
        let barrier = [vk::MemoryBarrier::default().src_access_mask(written).dst_access_mask(read)];
        // SAFETY: the command buffer is being recorded, and each access belongs to a stage that is named.
        unsafe { self.inner.raw.cmd_pipeline_barrier(self.raw, from, to, vk::DependencyFlags::empty(), &barrier, &[], &[]) };
    }
}
