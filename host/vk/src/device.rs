//! An opened device: what its objects share, its memory, and what it reports.
#![allow(unsafe_code)]

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ash::vk;

use crate::blocks::{BlockKind, DriverBlocks, RawBlock};
use crate::buffer::Buffer;
use crate::cache;
use crate::facts::DeviceFacts;
use crate::fault::{Fault, Result, failed};
use crate::import::RawImport;
use crate::instance::InstanceHold;
use crate::memory::pools::{Held, Pools, Range};
use crate::memory::staged::Placement;
use crate::memory::{Pool, books};
use crate::query;
use crate::queues::Queues;
use crate::quirks::Quirks;
use crate::upload::{UploadReport, Uploader};

/// An opened device. Clones share it; it closes when the last of them and of its objects is gone.
#[derive(Clone)]
pub struct Device {
    pub(crate) inner: Arc<Inner>,
}

/// What the device's objects share.
pub(crate) struct Inner {
    pub(crate) raw: ash::Device,
    pub(crate) instance: Arc<InstanceHold>,
    pub(crate) physical: vk::PhysicalDevice,
    pub(crate) facts: DeviceFacts,
    pub(crate) quirks: Quirks,
    pub(crate) placement: Placement,
    pub(crate) queues: Queues,
    /// The families of those queues, each once.
    pub(crate) families: Vec<u32>,
    /// The two queues under their locks; one lock where they are one queue.
    pub(crate) main: Arc<Mutex<vk::Queue>>,
    pub(crate) upload: Arc<Mutex<vk::Queue>>,
    /// Counts the submits of work, and those of uploads.
    pub(crate) timeline: vk::Semaphore,
    pub(crate) uploads: vk::Semaphore,
    pub(crate) submitted: AtomicU64,
    pub(crate) uploaded: AtomicU64,
    /// The upload that the last submit of work has waited for.
    pub(crate) upload_seen: AtomicU64,
    pub(crate) lost: AtomicBool,
    /// Lost without an answer: it may still run, so nothing of it is ever destroyed.
    pub(crate) stuck: AtomicBool,
    pub(crate) store: Mutex<Store>,
    /// By the pool's number.
    pub(crate) kinds: [BlockKind; 6],
    pub(crate) staging: BlockKind,
    pub(crate) limit: Option<u64>,
    pub(crate) fill_blocks: bool,
    pub(crate) filled: AtomicU64,
    pub(crate) import: Option<ash::ext::external_memory_host::Device>,
    pub(crate) uploader: Mutex<Option<Uploader>>,
    pub(crate) report: Mutex<UploadReport>,
    pub(crate) pipelines: vk::PipelineCache,
    pub(crate) cache_file: Option<PathBuf>,
    pub(crate) cache_was_read: bool,
    pub(crate) patience: Duration,
    pub(crate) spin: Duration,
}

/// The memory of a device.
pub(crate) struct Store {
    pub(crate) pools: Pools<RawBlock>,
    /// What was dropped, with the last submit that may use it.
    retired: Vec<(u64, Retired)>,
}

/// The block that a range was taken from.
pub(crate) struct Taken {
    pub(crate) address: u64,
    pub(crate) raw: vk::Buffer,
    pub(crate) memory: vk::DeviceMemory,
    pub(crate) mapped: Option<std::ptr::NonNull<u8>>,
}

/// Memory that goes back once the submits before it have ended.
pub(crate) enum Retired {
    Range(Range),
    Import(RawImport),
}

/// What a device holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryReport {
    /// By pool.
    pub pools: Vec<(Pool, Held)>,
    /// Bytes that count against the limit.
    pub counted: u64,
    /// Blocks that the device filled before their first use.
    pub filled: u64,
    /// Dropped ranges that a submit may still use.
    pub waiting: usize,
}

impl Store {
    pub(crate) fn new(pools: Pools<RawBlock>) -> Self {
        Self { pools, retired: Vec::new() }
    }
}

impl Device {
    /// What it is.
    pub fn facts(&self) -> &DeviceFacts {
        &self.inner.facts
    }

    /// What is known to be wrong with it.
    pub fn quirks(&self) -> Quirks {
        self.inner.quirks
    }

    /// Whether uploads are staged, and why.
    pub fn placement(&self) -> &Placement {
        &self.inner.placement
    }

    /// Its queues.
    pub fn queues(&self) -> Queues {
        self.inner.queues
    }

    /// Whether it is lost. Whatever lies on it is gone then.
    pub fn is_lost(&self) -> bool {
        self.inner.lost.load(Ordering::Acquire)
    }

    /// Allocates a buffer.
    pub fn buffer(&self, pool: Pool, bytes: u64) -> Result<Buffer> {
        Buffer::new(&self.inner, pool, bytes)
    }

    /// What its pools hold.
    pub fn memory(&self) -> MemoryReport {
        let inner = &self.inner;
        let mut store = inner.store();
        inner.collect(&mut store);
        MemoryReport {
            pools: Pool::ALL.iter().map(|&pool| (pool, store.pools.held(pool as usize))).collect(),
            counted: store.pools.counted(),
            filled: inner.filled.load(Ordering::Relaxed),
            waiting: store.retired.len(),
        }
    }

    /// What is free, now ([`books::free`]).
    pub fn free_bytes(&self) -> u64 {
        self.inner.free_bytes()
    }

    /// Changes what a pool may hold; what it holds above that stays.
    pub fn set_limit(&self, pool: Pool, limit: Option<u64>) {
        self.inner.store().pools.set_limit(pool as usize, limit);
    }

    /// What uploads did.
    pub fn uploads(&self) -> UploadReport {
        *self.inner.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the pipeline cache's file was there and whole.
    pub fn cache_was_read(&self) -> bool {
        self.inner.cache_was_read
    }

    /// Writes the pipeline cache's file, where the device was opened with a folder for it.
    pub fn save_cache(&self) -> Result<()> {
        let Some(path) = &self.inner.cache_file else { return Ok(()) };
        // SAFETY: the cache is of this device.
        let data = unsafe { self.inner.raw.get_pipeline_cache_data(self.inner.pipelines) };
        cache::write(path, &self.inner.facts, &data.map_err(failed("vkGetPipelineCacheData"))?)
    }
}

impl Inner {
    /// A fault once the device is lost: nothing is asked of it any more.
    pub(crate) fn check(&self) -> Result<()> {
        if self.lost.load(Ordering::Acquire) {
            return Err(Fault::Lost { during: "an earlier call", why: "nothing more is asked of it".into() });
        }
        Ok(())
    }

    /// Notes a loss.
    pub(crate) fn note<T>(&self, result: Result<T>) -> Result<T> {
        if result.as_ref().is_err_and(Fault::is_lost) {
            self.lost.store(true, Ordering::Release);
        }
        result
    }

    pub(crate) fn is_stuck(&self) -> bool {
        self.stuck.load(Ordering::Acquire)
    }

    /// The books. A panic elsewhere leaves them whole: each change is made in one go.
    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn free_bytes(&self) -> u64 {
        let budgets = self.facts.features.memory_budget.then(|| query::budgets(&self.instance, self.physical));
        let held = self.store().pools.counted();
        books::free(&self.facts.memory, budgets.as_deref(), held, self.limit)
    }

    /// Takes a range, after what has ended by now went back.
    pub(crate) fn take(&self, pool: Pool, bytes: u64) -> Result<(Range, Taken)> {
        let mut store = self.store();
        self.collect(&mut store);
        let range = self.note(store.pools.allocate(pool as usize, bytes, &mut DriverBlocks(self)))?;
        let block = store.pools.block(&range);
        let taken = Taken { address: block.address, raw: block.buffer, memory: block.memory, mapped: block.mapped };
        drop(store);
        Ok((range, taken))
    }

    /// Gives memory back, now or behind the last submit.
    pub(crate) fn retire(&self, memory: Retired) {
        let mut store = self.store();
        store.retired.push((self.submitted.load(Ordering::Acquire), memory));
        self.collect(&mut store);
    }

    /// Gives back what no submit uses any more. Of a lost device all of it stays until it closes.
    pub(crate) fn collect(&self, store: &mut Store) {
        if store.retired.is_empty() || self.lost.load(Ordering::Acquire) {
            return;
        }
        let ended = self.counter().unwrap_or(0);
        if ended == u64::MAX {
            return;
        }
        let (gone, kept) = std::mem::take(&mut store.retired).into_iter().partition(|(value, _)| *value <= ended);
        store.retired = kept;
        self.give_back(store, gone);
    }

    fn give_back(&self, store: &mut Store, gone: Vec<(u64, Retired)>) {
        for (_, memory) in gone {
            match memory {
                Retired::Range(range) => store.pools.free(range, &mut DriverBlocks(self)),
                Retired::Import(import) => import.destroy(&self.raw),
            }
        }
    }

    /// How far the timeline is.
    pub(crate) fn counter(&self) -> Result<u64> {
        // SAFETY: the semaphore is of this device and counts.
        unsafe { self.raw.get_semaphore_counter_value(self.timeline) }.map_err(failed("vkGetSemaphoreCounterValue"))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.is_stuck() {
            // Waiting for it could take forever; the end of the process takes it apart.
            return;
        }
        // SAFETY: every object of the device keeps this one, so nobody else uses its queues. A lost device answers with an error, and may
        // be taken apart as well.
        let _ = unsafe { self.raw.device_wait_idle() };
        {
            let mut store = self.store();
            let gone = std::mem::take(&mut store.retired);
            self.give_back(&mut store, gone);
        }
        if let Some(uploader) = self.uploader.lock().unwrap_or_else(PoisonError::into_inner).take() {
            uploader.destroy(self);
        }
        // SAFETY: as above: idle, and made by this device.
        unsafe { self.raw.destroy_pipeline_cache(self.pipelines, None) };
        // SAFETY: as above.
        unsafe { self.raw.destroy_semaphore(self.timeline, None) };
        // SAFETY: as above.
        unsafe { self.raw.destroy_semaphore(self.uploads, None) };
        // SAFETY: as above; nothing of it is left.
        unsafe { self.raw.destroy_device(None) };
    }
}
