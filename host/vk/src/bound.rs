//! Kernels from outside: SPIR-V that was looked at, over bound buffers that it cannot leave.
//!
//! A block of memory is one Vulkan buffer, and what robust access promises holds for a whole Vulkan buffer. So a binding gets one of its
//! own, of exactly the bytes that are bound, over the same memory: what lies beside them cannot be reached on any driver.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use ash::vk;

use crate::blocks::USAGE;
use crate::buffer::{Buffer, Region};
use crate::commands::Recorder;
use crate::device::{Device, Inner};
use crate::facts::DeviceFacts;
use crate::fault::{Fault, Result, failed};
use crate::memory::pools::GRANULE;
use crate::pipeline::{Kernel, PipelineHold};
use crate::spirv::{self, Capability, Checked, Wanted};

/// A kernel from outside. Its buffers are bindings 0 and up of set 0, and its entry point is `main`.
#[derive(Debug, Clone)]
pub struct BoundKernel<'a> {
    /// For messages.
    pub name: &'a str,
    /// The module, as little-endian words.
    pub spirv: &'a [u8],
    /// Buffers that it is bound to.
    pub buffers: u32,
    /// Those of them that it writes; the others it may only read.
    pub written: Range<u32>,
    /// Specialization constants: their numbers and bits.
    pub constants: &'a [(u32, u32)],
}

/// A compiled kernel from outside. Clones share it.
#[derive(Clone)]
pub struct BoundPipeline {
    hold: Arc<BoundHold>,
}

struct BoundHold {
    pipeline: PipelineHold,
    set: vk::DescriptorSetLayout,
    buffers: usize,
    written: Range<usize>,
    workgroup: [u32; 3],
}

/// What a binding is bound to: so many bytes of a buffer, from a multiple of 256 on.
#[derive(Clone, Copy)]
pub struct Bound<'a> {
    /// The buffer.
    pub buffer: &'a Buffer,
    /// Where in it.
    pub at: u64,
    /// How many bytes.
    pub bytes: u64,
}

impl<'a> Bound<'a> {
    /// All of a buffer.
    pub fn whole(buffer: &'a Buffer) -> Self {
        Self { buffer, at: 0, bytes: buffer.bytes() }
    }
}

impl BoundPipeline {
    /// Invocations of its workgroups.
    pub fn workgroup(&self) -> [u32; 3] {
        self.hold.workgroup
    }

    /// The subgroup size that it runs with.
    pub fn subgroup(&self) -> u32 {
        self.hold.pipeline.subgroup
    }
}

impl Device {
    /// Looks at a kernel from outside and compiles it. The device must have been opened with [`crate::Options::robust`].
    pub fn bound_pipeline(&self, kernel: &BoundKernel<'_>) -> Result<BoundPipeline> {
        let inner = &self.inner;
        inner.check()?;
        let wrong = |why: String| Fault::wrong(format!("kernel {}: {why}", kernel.name));
        let facts = &inner.facts;
        if !facts.features.robust {
            return Err(wrong("the device was not opened with robust access, or has none".into()));
        }
        if kernel.buffers == 0 || kernel.buffers > facts.limits.bindings {
            return Err(wrong(format!("{} buffers, the device binds 1 to {}", kernel.buffers, facts.limits.bindings)));
        }
        let wanted = Wanted { buffers: kernel.buffers, written: kernel.written.clone(), constants: kernel.constants };
        let checked = spirv::check(kernel.spirv, &wanted).map_err(wrong)?;
        fits(facts, &checked).map_err(wrong)?;
        let set = inner.set_layout(kernel.buffers)?;
        let plain = Kernel { name: kernel.name, constants: kernel.constants, ..Kernel::default() };
        let pipeline = inner.pipeline(&plain, &checked.words, &c"main".to_owned(), &[set]).inspect_err(|_| {
            // SAFETY: nothing uses it.
            unsafe { inner.raw.destroy_descriptor_set_layout(set, None) };
        })?;
        let written = kernel.written.start as usize..kernel.written.end as usize;
        let hold = BoundHold { pipeline, set, buffers: kernel.buffers as usize, written, workgroup: checked.workgroup };
        Ok(BoundPipeline { hold: Arc::new(hold) })
    }
}

/// Whether the device can do what a module asks for.
fn fits(facts: &DeviceFacts, checked: &Checked) -> std::result::Result<(), String> {
    let (has, groups, limits) = (&facts.features, &facts.subgroups, &facts.limits);
    let can = |capability: Capability| match capability {
        Capability::Shader | Capability::Subgroup => true,
        Capability::Float16 => has.float16,
        Capability::Int16 => has.int16,
        Capability::Int8 => has.int8,
        Capability::Storage16 => has.storage16,
        Capability::Storage8 => has.storage8,
        Capability::Vote => groups.vote,
        Capability::Arithmetic => groups.arithmetic,
        Capability::Ballot => groups.ballot,
        Capability::Shuffle => groups.shuffle,
    };
    if let Some(lacking) = checked.capabilities.iter().find(|capability| !can(**capability)) {
        return Err(format!("the device lacks {lacking}"));
    }
    let [x, y, z] = checked.workgroup;
    if x == 0 || x > limits.invocations || (y, z) != (1, 1) {
        return Err(format!("workgroups of {x} x {y} x {z}, the device takes 1 to {} in a row", limits.invocations));
    }
    if checked.shared_bytes > limits.shared.into() {
        return Err(format!("{} bytes of shared memory, the device has {}", checked.shared_bytes, limits.shared));
    }
    Ok(())
}

impl Inner {
    fn set_layout(&self, buffers: u32) -> Result<vk::DescriptorSetLayout> {
        let bindings: Vec<_> = (0..buffers)
            .map(|binding| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(binding)
                    .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                    .descriptor_count(1)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE)
            })
            .collect();
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        // SAFETY: there are no more bindings than the device's limit.
        unsafe { self.raw.create_descriptor_set_layout(&info, None) }.map_err(failed("vkCreateDescriptorSetLayout"))
    }

    /// A Vulkan buffer of exactly the bytes that are bound, over their memory.
    fn window(&self, bound: &Bound<'_>) -> Result<vk::Buffer> {
        let place = bound.buffer.region();
        let offset = place.part(self, bound.at, bound.bytes)?;
        let most = self.facts.limits.binding;
        if bound.bytes == 0 || bound.bytes > most || !bound.bytes.is_multiple_of(4) || !offset.is_multiple_of(GRANULE) {
            let Bound { at, bytes, .. } = bound;
            return Err(Fault::wrong(format!(
                "{bytes} bytes at {at} cannot be bound: words from a multiple of {GRANULE} on, {most} bytes at most"
            )));
        }
        let sharing = if self.families.len() > 1 { vk::SharingMode::CONCURRENT } else { vk::SharingMode::EXCLUSIVE };
        let mut info = vk::BufferCreateInfo::default().size(bound.bytes).usage(USAGE).sharing_mode(sharing);
        if self.families.len() > 1 {
            info = info.queue_family_indices(&self.families);
        }
        // SAFETY: `info` is complete; the families are of queues of this device.
        let buffer = unsafe { self.raw.create_buffer(&info, None) }.map_err(failed("vkCreateBuffer"))?;
        self.lay(buffer, bound, offset).inspect_err(|_| {
            // SAFETY: the buffer was made here and nobody has seen it.
            unsafe { self.raw.destroy_buffer(buffer, None) };
        })?;
        Ok(buffer)
    }

    fn lay(&self, buffer: vk::Buffer, bound: &Bound<'_>, offset: u64) -> Result<()> {
        let hold = &bound.buffer.hold;
        // SAFETY: the buffer is of this device.
        let needs = unsafe { self.raw.get_buffer_memory_requirements(buffer) };
        // SAFETY: so is the block's, whose memory is as large as its own requirements say.
        let block = unsafe { self.raw.get_buffer_memory_requirements(hold.raw) };
        let inside = offset.checked_add(needs.size).is_some_and(|end| end <= block.size);
        if !inside || !offset.is_multiple_of(needs.alignment.max(1)) || needs.memory_type_bits != block.memory_type_bits {
            return Err(Fault::wrong(format!("the driver cannot bind {} bytes by themselves: {needs:?} at {offset}", bound.bytes)));
        }
        // SAFETY: the buffer is new, and the memory takes it there: the same types serve both, and size and alignment were compared.
        unsafe { self.raw.bind_buffer_memory(buffer, hold.memory, offset) }.map_err(failed("vkBindBufferMemory"))
    }
}

impl Drop for BoundHold {
    fn drop(&mut self) {
        let inner = &self.pipeline.inner;
        if inner.is_stuck() {
            return;
        }
        // SAFETY: sets of this layout live no longer than the commands that keep this.
        unsafe { inner.raw.destroy_descriptor_set_layout(self.set, None) };
    }
}

/// The set of one dispatch, and the buffers that it names.
struct Set {
    pipeline: Arc<BoundHold>,
    pool: vk::DescriptorPool,
    windows: Vec<vk::Buffer>,
}

impl Set {
    fn new(pipeline: &Arc<BoundHold>, bound: &[Bound<'_>]) -> Result<(Self, vk::DescriptorSet)> {
        let inner = &pipeline.pipeline.inner;
        let count = u32::try_from(bound.len()).unwrap_or(u32::MAX);
        let sizes = [vk::DescriptorPoolSize::default().ty(vk::DescriptorType::STORAGE_BUFFER).descriptor_count(count)];
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
        // SAFETY: `info` is complete.
        let pool = unsafe { inner.raw.create_descriptor_pool(&info, None) }.map_err(failed("vkCreateDescriptorPool"))?;
        // Owned from here on, so that a failure below takes it apart.
        let mut made = Self { pipeline: Arc::clone(pipeline), pool, windows: Vec::with_capacity(bound.len()) };
        for one in bound {
            made.windows.push(inner.window(one)?);
        }
        let layouts = [pipeline.set];
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        // SAFETY: the pool is new and has room for this one set.
        let sets = unsafe { inner.raw.allocate_descriptor_sets(&info) }.map_err(failed("vkAllocateDescriptorSets"))?;
        let set = sets.first().copied().ok_or_else(|| Fault::wrong("vkAllocateDescriptorSets gave none"))?;
        let whole = |buffer: &vk::Buffer| [vk::DescriptorBufferInfo::default().buffer(*buffer).range(vk::WHOLE_SIZE)];
        let infos: Vec<_> = made.windows.iter().map(whole).collect();
        let write = |(binding, info)| {
            let write = vk::WriteDescriptorSet::default().dst_set(set).dst_binding(binding);
            write.descriptor_type(vk::DescriptorType::STORAGE_BUFFER).buffer_info(info)
        };
        let writes: Vec<_> = (0u32..).zip(infos.iter().map(|info| &info[..])).map(write).collect();
        // SAFETY: the set is in no use yet, and each buffer is bound and made for storage.
        unsafe { inner.raw.update_descriptor_sets(&writes, &[]) };
        Ok((made, set))
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        let inner = &self.pipeline.pipeline.inner;
        if inner.is_stuck() {
            return;
        }
        // SAFETY: commands keep what they use, and outlive what they submitted; the set goes with its pool.
        unsafe { inner.raw.destroy_descriptor_pool(self.pool, None) };
        for window in &self.windows {
            // SAFETY: as above; the memory is the buffer's, which is kept beside this.
            unsafe { inner.raw.destroy_buffer(*window, None) };
        }
    }
}

impl Recorder<'_> {
    /// Runs a kernel from outside over a grid of workgroups, bound to exactly these bytes. What it writes overlaps nothing else of them.
    pub fn dispatch_bound(&mut self, pipeline: &BoundPipeline, bound: &[Bound<'_>], groups: [u32; 3]) -> Result<()> {
        let hold = &pipeline.hold;
        if !std::ptr::eq(Arc::as_ptr(&hold.pipeline.inner), self.inner) {
            return Err(Fault::wrong("a pipeline of another device cannot be used here"));
        }
        if bound.len() != hold.buffers {
            return Err(Fault::wrong(format!("{} buffers are bound, the kernel takes {}", bound.len(), hold.buffers)));
        }
        self.check_grid(groups)?;
        apart(bound, &hold.written)?;
        let (made, set) = Set::new(hold, bound)?;
        // SAFETY: the pipeline is of this device and kept.
        unsafe { self.inner.raw.cmd_bind_pipeline(self.raw, vk::PipelineBindPoint::COMPUTE, hold.pipeline.raw) };
        let compute = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: the set has the layout that the pipeline was made for, and is kept.
        unsafe { self.inner.raw.cmd_bind_descriptor_sets(self.raw, compute, hold.pipeline.layout, 0, &[set], &[]) };
        let [x, y, z] = groups;
        // SAFETY: pipeline and set are bound, and the grid is within the limits.
        unsafe { self.inner.raw.cmd_dispatch(self.raw, x, y, z) };
        self.keep.push(Arc::new(made));
        self.keep.extend(bound.iter().map(|one| one.buffer.region().hold));
        Ok(())
    }
}

/// Whether each range that is written lies apart from all others.
fn apart(bound: &[Bound<'_>], written: &Range<usize>) -> Result<()> {
    let bytes = |at: usize| {
        let start = bound[at].buffer.address().saturating_add(bound[at].at);
        start..start.saturating_add(bound[at].bytes)
    };
    for (one, other) in written.clone().flat_map(|one| (0..bound.len()).map(move |other| (one, other))) {
        if one < bound.len() && one != other && bytes(one).start < bytes(other).end && bytes(other).start < bytes(one).end {
            return Err(Fault::wrong(format!("binding {one} is written and overlaps binding {other}")));
        }
    }
    Ok(())
}
