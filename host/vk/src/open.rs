//! Opens a device: its features one by one, its queues, where its memory lies, and the question how much of its window a card really gives.
#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ash::vk;

use crate::blocks::{BlockKind, USAGE};
use crate::cache;
use crate::choose::refusal;
use crate::device::{Device, Inner, Store};
use crate::facts::{DeviceFacts, Version};
use crate::fault::{Fault, Result, failed};
use crate::instance::Instance;
use crate::memory::pools::{PoolRules, Pools, Rules};
use crate::memory::staged::{self, Placement};
use crate::memory::types::{self, Use};
use crate::memory::{GIB, MIB, Pool, books};
use crate::query::Extensions;
use crate::queues::{self, QueueAt, Queues};
use crate::quirks::{self, Quirk, Quirks};
use crate::upload::UploadReport;

/// How a device is opened. The default decides everything from the device.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of device memory at most (`--vram-limit`).
    pub limit: Option<u64>,
    /// Whether uploads are staged, where a person or a test says so.
    pub staged: Option<bool>,
    /// Treats the host-visible part of device memory as at most this large; for tests.
    pub window: Option<u64>,
    /// Whether the driver is asked how much of its window it gives.
    pub probe: Probe,
    /// The folder of pipeline caches.
    pub cache: Option<PathBuf>,
    /// Whether the device fills a new block before its first use. Only a test says no.
    pub fill: bool,
    /// Whether the host's pages may be read in place.
    pub import: bool,
    /// Whether kernels from outside may run, over bound buffers that they cannot leave. Some cards pay for it everywhere, so only where
    /// there is such a kernel.
    pub robust: bool,
    /// After this long without an answer the device counts as lost.
    pub patience: Duration,
    /// For this long a wait asks again and again before it sleeps. On a large card an answer comes some 25
    /// microseconds sooner this way; a thread that spins is one less for others.
    pub spin: Duration,
}

/// The question how much of its window a driver gives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Probe {
    /// Asked of cards that look as if they gave all of it.
    #[default]
    Cards,
    /// Asked of any device, for so many bytes; for tests.
    Ask(u64),
    /// Not asked: so much was asked for, and so much given; for tests.
    Answer {
        /// Asked for.
        asked: u64,
        /// Given.
        given: u64,
    },
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limit: None,
            staged: None,
            window: None,
            probe: Probe::Cards,
            cache: None,
            fill: true,
            import: true,
            robust: false,
            patience: Duration::from_secs(120),
            spin: Duration::from_millis(2),
        }
    }
}

/// The structures that turn features on.
#[derive(Default)]
struct Enabled<'a> {
    v11: vk::PhysicalDeviceVulkan11Features<'a>,
    v12: vk::PhysicalDeviceVulkan12Features<'a>,
    sizes: vk::PhysicalDeviceSubgroupSizeControlFeatures<'a>,
    dot: vk::PhysicalDeviceShaderIntegerDotProductFeatures<'a>,
    matrix: vk::PhysicalDeviceCooperativeMatrixFeaturesKHR<'a>,
    priority: vk::PhysicalDeviceMemoryPriorityFeaturesEXT<'a>,
}

impl Device {
    /// Opens one of [`Instance::devices`].
    pub fn open(instance: &Instance, facts: &DeviceFacts, options: &Options) -> Result<Self> {
        if let Some(why) = refusal(facts) {
            return Err(Fault::NoDevice { why: format!("{}: {why}", facts.name) });
        }
        let mut facts = facts.clone();
        let quirks = quirks::quirks(&facts);
        mask(&mut facts, quirks, options);
        let physical = instance.physical()?.get(facts.index as usize).copied();
        let physical = physical.ok_or_else(|| Fault::NoDevice { why: format!("{} is gone", facts.name) })?;
        let queues = queues::choose(&facts.families, !quirks.has(Quirk::NoTransferQueue));
        let queues = queues.ok_or_else(|| Fault::NoDevice { why: format!("{}: it lacks a compute queue", facts.name) })?;
        let raw = create(instance, physical, &facts, queues)?;
        let made = assemble(instance, physical, raw, facts, quirks, queues, options)?;
        made.decide_placement(options)
    }
}

/// Takes out what a quirk or an option says is not to be used.
fn mask(facts: &mut DeviceFacts, quirks: Quirks, options: &Options) {
    let features = &mut facts.features;
    features.cooperative_matrix &= !quirks.has(Quirk::NoMatrices) && features.memory_model;
    features.host_import &= !quirks.has(Quirk::NoImport) && options.import;
    features.integer_dot_fast &= !quirks.has(Quirk::SlowIntegerDot);
    features.robust &= options.robust;
    if !features.cooperative_matrix {
        facts.matrices.clear();
    }
}

fn create(instance: &Instance, physical: vk::PhysicalDevice, facts: &DeviceFacts, queues: Queues) -> Result<ash::Device> {
    let listed = Extensions::of(&instance.hold, physical);
    let names = extensions(facts, &listed);
    let has = &facts.features;
    let bit = vk::Bool32::from;
    let mut on = Enabled::default();
    on.v11.storage_buffer16_bit_access = bit(has.storage16);
    on.v12.buffer_device_address = vk::TRUE;
    on.v12.timeline_semaphore = vk::TRUE;
    on.v12.storage_buffer8_bit_access = bit(has.storage8);
    on.v12.shader_float16 = bit(has.float16);
    on.v12.shader_int8 = bit(has.int8);
    on.v12.vulkan_memory_model = bit(has.memory_model);
    on.v12.vulkan_memory_model_device_scope = bit(has.memory_model);
    on.v12.scalar_block_layout = bit(has.scalar_layout);
    on.sizes.subgroup_size_control = vk::TRUE;
    on.dot.shader_integer_dot_product = vk::TRUE;
    on.matrix.cooperative_matrix = vk::TRUE;
    on.priority.memory_priority = vk::TRUE;
    let basic = vk::PhysicalDeviceFeatures {
        robust_buffer_access: bit(has.robust),
        shader_int16: bit(has.int16),
        shader_int64: bit(has.int64),
        ..Default::default()
    };
    let mut chain = vk::PhysicalDeviceFeatures2::default().features(basic).push_next(&mut on.v11).push_next(&mut on.v12);
    if facts.subgroups.control {
        chain = chain.push_next(&mut on.sizes);
    }
    if has.integer_dot {
        chain = chain.push_next(&mut on.dot);
    }
    if has.cooperative_matrix {
        chain = chain.push_next(&mut on.matrix);
    }
    if has.memory_priority {
        chain = chain.push_next(&mut on.priority);
    }
    let priorities = [1.0, 1.0];
    let count = |family| if queues.upload.family == family && queues.upload.index > 0 { 2 } else { 1 };
    let families: BTreeSet<u32> = [queues.main.family, queues.upload.family].into();
    let queue =
        |family: &u32| vk::DeviceQueueCreateInfo::default().queue_family_index(*family).queue_priorities(&priorities[..count(*family)]);
    let asked: Vec<_> = families.iter().map(queue).collect();
    let names: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
    let info = vk::DeviceCreateInfo::default().queue_create_infos(&asked).enabled_extension_names(&names).push_next(&mut chain);
    // SAFETY: the extensions and features are among those that the device has, and all that `info` points at lives until the end.
    unsafe { instance.hold.raw.create_device(physical, &info, None) }
        .map_err(|result| Fault::NoDevice { why: format!("{}: vkCreateDevice: {result:?}", facts.name) })
}

/// The extensions to turn on: each for a feature that is used, none that has become part of the device's version.
fn extensions(facts: &DeviceFacts, listed: &Extensions) -> Vec<&'static CStr> {
    let old = facts.api < (Version { major: 1, minor: 3 });
    let has = &facts.features;
    let wanted: [(bool, &'static CStr); 7] = [
        (old && facts.subgroups.control, ash::ext::subgroup_size_control::NAME),
        (old && has.integer_dot, ash::khr::shader_integer_dot_product::NAME),
        (has.memory_budget, ash::ext::memory_budget::NAME),
        (has.memory_priority, ash::ext::memory_priority::NAME),
        (has.host_import, ash::ext::external_memory_host::NAME),
        (has.cooperative_matrix, ash::khr::cooperative_matrix::NAME),
        // A device that lists it must have it turned on.
        (true, ash::khr::portability_subset::NAME),
    ];
    wanted.into_iter().filter(|(wanted, name)| *wanted && listed.has(name)).map(|(_, name)| name).collect()
}

fn assemble(
    instance: &Instance,
    physical: vk::PhysicalDevice,
    raw: ash::Device,
    facts: DeviceFacts,
    quirks: Quirks,
    queues: Queues,
    options: &Options,
) -> Result<Opening> {
    // From here on a failure must close the device, which `Closer` does until its parts have an owner.
    let closer = Closer(Some(raw));
    let raw = closer.device();
    let allowed = allowed_types(raw)?;
    let data = options.cache.as_ref().map(|folder| cache::file(folder, &facts));
    let stored = data.as_ref().and_then(|path| cache::read(path, &facts));
    let initial = stored.as_deref().unwrap_or(&[]);
    let info = vk::PipelineCacheCreateInfo::default().initial_data(initial);
    // SAFETY: the data is empty or what this driver gave for this device, as its header and checksum say.
    let pipelines = unsafe { raw.create_pipeline_cache(&info, None) }.map_err(failed("vkCreatePipelineCache"))?;
    let semaphores = semaphore(raw).and_then(|timeline| Ok((timeline, semaphore(raw)?)));
    let (timeline, uploads) = semaphores?;
    let main = locked(raw, queues.main);
    let upload = if queues.upload == queues.main { Arc::clone(&main) } else { locked(raw, queues.upload) };
    let import = facts.features.host_import.then(|| ash::ext::external_memory_host::Device::new(&instance.hold.raw, raw));
    let placement = staged::decide(&facts.memory, options.staged, options.window);
    let families: BTreeSet<u32> = [queues.main.family, queues.upload.family].into();
    let (kinds, staging) = kinds(&facts, allowed, placement.staged)?;
    let store = Mutex::new(Store::new(pools(&facts, &kinds, options.limit)));
    let Some(raw) = closer.keep() else { return Err(Fault::wrong("the device closed while it opened")) };
    let inner = Inner {
        raw,
        instance: Arc::clone(&instance.hold),
        physical,
        quirks,
        placement,
        queues,
        families: families.into_iter().collect(),
        main,
        upload,
        timeline,
        uploads,
        submitted: AtomicU64::new(0),
        uploaded: AtomicU64::new(0),
        upload_seen: AtomicU64::new(0),
        lost: AtomicBool::new(false),
        stuck: AtomicBool::new(false),
        store,
        kinds,
        staging,
        limit: options.limit,
        fill_blocks: options.fill,
        filled: AtomicU64::new(0),
        import,
        uploader: Mutex::new(None),
        report: Mutex::new(UploadReport::default()),
        pipelines,
        cache_file: data,
        cache_was_read: stored.is_some(),
        patience: options.patience,
        spin: options.spin,
        facts,
    };
    Ok(Opening { inner, allowed })
}

/// A queue that the device was made with, under a lock of its own.
fn locked(raw: &ash::Device, at: QueueAt) -> Arc<Mutex<vk::Queue>> {
    // SAFETY: `create` asked for every queue that the choice names.
    Arc::new(Mutex::new(unsafe { raw.get_device_queue(at.family, at.index) }))
}

/// A device that is open and has not decided yet where resident data goes.
struct Opening {
    inner: Inner,
    allowed: u32,
}

impl Opening {
    /// Asks a card whose window is said to be as large as its memory whether it is, and settles on mapped or staged.
    fn decide_placement(self, options: &Options) -> Result<Device> {
        let Self { mut inner, allowed } = self;
        if let Some(placement) = inner.ask_window(options) {
            if placement.staged {
                let (kinds, staging) = kinds(&inner.facts, allowed, true)?;
                *inner.store() = Store::new(pools(&inner.facts, &kinds, options.limit));
                (inner.kinds, inner.staging) = (kinds, staging);
            }
            inner.placement = placement;
        }
        Ok(Device { inner: Arc::new(inner) })
    }
}

impl Inner {
    /// What the driver's answer makes of a device that looks mapped; `None` where nothing is asked.
    fn ask_window(&self, options: &Options) -> Option<Placement> {
        if self.placement.staged || options.staged.is_some() {
            return None;
        }
        let asked = match options.probe {
            Probe::Answer { asked, given } => return Some(staged::after_probe(asked, given)),
            Probe::Ask(bytes) => bytes,
            Probe::Cards => {
                let free = self.facts.features.memory_budget.then(|| self.free_bytes());
                staged::probe_bytes(&self.facts.memory, self.facts.kind, &self.placement, None, free)?
            }
        };
        // The probe counts like any other memory, so that a limit holds for it.
        let asked = asked.min(options.limit.unwrap_or(u64::MAX)) / GIB * GIB;
        (asked > 0).then(|| staged::after_probe(asked, self.probe_window(asked)))
    }

    /// How much of `asked` the host-visible device-local type gives, in blocks of a gibibyte, all given back at the end.
    fn probe_window(&self, asked: u64) -> u64 {
        let Some((_, at)) = self.facts.memory.window() else { return 0 };
        let blocks = (0..asked / GIB).map_while(|_| self.allocate(at, GIB, 0.5).ok());
        let held: Vec<vk::DeviceMemory> = blocks.collect();
        for memory in &held {
            // SAFETY: it was allocated above and nothing is bound to it.
            unsafe { self.raw.free_memory(*memory, None) };
        }
        held.len() as u64 * GIB
    }
}

/// Closes a device unless it is kept.
struct Closer(Option<ash::Device>);

impl Closer {
    fn device(&self) -> &ash::Device {
        match &self.0 {
            Some(device) => device,
            None => unreachable!("it is taken out only by `keep`, which takes the closer"),
        }
    }

    fn keep(mut self) -> Option<ash::Device> {
        self.0.take()
    }
}

impl Drop for Closer {
    fn drop(&mut self) {
        if let Some(device) = self.0.take() {
            // SAFETY: it did not get as far as having work. A pipeline cache or a semaphore that it may have goes with it.
            unsafe { device.destroy_device(None) };
        }
    }
}

/// The memory types that our buffers may lie in, as bits.
fn allowed_types(raw: &ash::Device) -> Result<u32> {
    let info = vk::BufferCreateInfo::default().size(MIB).usage(USAGE).sharing_mode(vk::SharingMode::EXCLUSIVE);
    // SAFETY: `info` is complete.
    let buffer = unsafe { raw.create_buffer(&info, None) }.map_err(failed("vkCreateBuffer"))?;
    // SAFETY: the buffer is of this device.
    let needs = unsafe { raw.get_buffer_memory_requirements(buffer) };
    // SAFETY: nobody has seen it.
    unsafe { raw.destroy_buffer(buffer, None) };
    Ok(needs.memory_type_bits)
}

fn semaphore(raw: &ash::Device) -> Result<vk::Semaphore> {
    let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
    let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
    // SAFETY: timeline semaphores are on.
    unsafe { raw.create_semaphore(&info, None) }.map_err(failed("vkCreateSemaphore"))
}

fn kinds(facts: &DeviceFacts, allowed: u32, staged: bool) -> Result<([BlockKind; 6], BlockKind)> {
    let types = |purpose| {
        let found = types::choose(&facts.memory, facts.kind, allowed, staged, purpose);
        found.ok_or_else(|| Fault::NoDevice { why: format!("{}: no memory type serves {purpose:?}", facts.name) })
    };
    let mut kinds = Vec::with_capacity(Pool::ALL.len());
    for pool in Pool::ALL {
        let mapped = match pool.purpose() {
            Use::Device => false,
            Use::Resident => !staged,
            _ => true,
        };
        kinds.push(BlockKind { types: types(pool.purpose())?, mapped, priority: pool.priority() });
    }
    let staging = BlockKind { types: types(Use::Staging)?, mapped: true, priority: 1.0 };
    let kinds = kinds.try_into().map_err(|_| Fault::wrong("there are not as many kinds as pools"))?;
    Ok((kinds, staging))
}

fn pools(facts: &DeviceFacts, kinds: &[BlockKind; 6], limit: Option<u64>) -> Pools<crate::blocks::RawBlock> {
    let allocation = facts.limits.allocation.min(facts.limits.buffer);
    // A few are left for staging, imports and whatever a layer above allocates by itself.
    let allocations = facts.limits.allocations.saturating_sub(64).max(16);
    let pool = |pool: Pool| {
        let heap = facts.memory.types[kinds[pool as usize].types.first].heap;
        let block = if matches!(pool, Pool::Upload | Pool::Readback) { 16 * MIB } else { 256 * MIB };
        PoolRules { name: pool.name(), limit: None, counted: books::counts(&facts.memory, heap, facts.shares_memory()), block }
    };
    Pools::new(Rules { limit, allocation, allocations }, Pool::ALL.map(pool))
}

/// Says what was decided, for a log.
impl std::fmt::Display for Placement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", if self.staged { "staged uploads" } else { "mapped memory" }, self.reason)
    }
}
