//! The driver as a source of blocks: one allocation, one buffer over all of it, its address and, where the host takes part, its mapping.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use ash::vk;

use crate::device::Inner;
use crate::fault::{Fault, Result, failed};
use crate::memory::Pool;
use crate::memory::pools::{Blocks, GRANULE};
use crate::memory::types::Types;

/// What a buffer of ours can be: everything that a kernel or a copy may want, so that one buffer serves a block.
pub(crate) const USAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(
    vk::BufferUsageFlags::STORAGE_BUFFER.as_raw()
        | vk::BufferUsageFlags::INDIRECT_BUFFER.as_raw()
        | vk::BufferUsageFlags::TRANSFER_SRC.as_raw()
        | vk::BufferUsageFlags::TRANSFER_DST.as_raw()
        | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS.as_raw(),
);

/// A block of device memory.
#[derive(Debug)]
pub(crate) struct RawBlock {
    pub(crate) buffer: vk::Buffer,
    pub(crate) memory: vk::DeviceMemory,
    pub(crate) address: u64,
    /// Where the host sees it.
    pub(crate) mapped: Option<NonNull<u8>>,
}

// SAFETY: the pointer is to mapped device memory, which no thread owns; it is only copied from and to as bytes.
unsafe impl Send for RawBlock {}

/// What a block is made for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockKind {
    pub(crate) types: Types,
    /// Whether the host writes or reads it.
    pub(crate) mapped: bool,
    pub(crate) priority: f32,
}

/// Blocks from the driver, for the pools.
pub(crate) struct DriverBlocks<'a>(pub(crate) &'a Inner);

impl Blocks for DriverBlocks<'_> {
    type Block = RawBlock;

    fn take(&mut self, pool: usize, bytes: u64) -> Result<RawBlock> {
        let inner = self.0;
        let block = inner.make_block(inner.kinds[pool], bytes)?;
        let by_device = !matches!(Pool::ALL[pool], Pool::Upload | Pool::Readback);
        if by_device && inner.fill_blocks {
            // Memory that no kernel ever touched gave changing results on some devices, and its first touch costs time on others.
            if let Err(fault) = inner.fill(block.buffer) {
                inner.drop_block(block);
                return Err(fault);
            }
            inner.filled.fetch_add(1, Ordering::Relaxed);
        }
        Ok(block)
    }

    fn give(&mut self, _pool: usize, block: RawBlock) {
        self.0.drop_block(block);
    }
}

impl Inner {
    /// Makes a block. Nothing stays behind when it fails.
    pub(crate) fn make_block(&self, kind: BlockKind, bytes: u64) -> Result<RawBlock> {
        self.check()?;
        let sharing = if self.families.len() > 1 { vk::SharingMode::CONCURRENT } else { vk::SharingMode::EXCLUSIVE };
        let mut info = vk::BufferCreateInfo::default().size(bytes).usage(USAGE).sharing_mode(sharing);
        if self.families.len() > 1 {
            info = info.queue_family_indices(&self.families);
        }
        // SAFETY: `info` is complete; the families are of queues of this device.
        let buffer = unsafe { self.raw.create_buffer(&info, None) }.map_err(failed("vkCreateBuffer"))?;
        // SAFETY: the buffer is of this device.
        let needs = unsafe { self.raw.get_buffer_memory_requirements(buffer) };
        let tries = [Some(kind.types.first), kind.types.then].into_iter().flatten();
        let mut refused = Fault::Memory { what: "no memory type takes buffers".into() };
        for at in tries.filter(|&at| at < 32 && needs.memory_type_bits >> at & 1 == 1) {
            match self.allocate(at, needs.size, kind.priority) {
                Ok(memory) => return self.bind(buffer, memory, kind.mapped),
                Err(fault) => refused = fault,
            }
        }
        // SAFETY: the buffer was made here and nobody has seen it.
        unsafe { self.raw.destroy_buffer(buffer, None) };
        Err(refused)
    }

    pub(crate) fn allocate(&self, memory_type: usize, bytes: u64, priority: f32) -> Result<vk::DeviceMemory> {
        let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        let mut order = vk::MemoryPriorityAllocateInfoEXT::default().priority(priority);
        let index = u32::try_from(memory_type).unwrap_or(0);
        let mut info = vk::MemoryAllocateInfo::default().allocation_size(bytes).memory_type_index(index).push_next(&mut flags);
        if self.facts.features.memory_priority {
            info = info.push_next(&mut order);
        }
        // SAFETY: the type is one of the device's, and each structure in the chain belongs to a feature that is on.
        unsafe { self.raw.allocate_memory(&info, None) }.map_err(failed("vkAllocateMemory"))
    }

    fn bind(&self, buffer: vk::Buffer, memory: vk::DeviceMemory, mapped: bool) -> Result<RawBlock> {
        let mut block = RawBlock { buffer, memory, address: 0, mapped: None };
        let made = self.finish(&mut block, mapped);
        match made {
            Ok(()) => Ok(block),
            Err(fault) => {
                self.drop_block(block);
                Err(fault)
            }
        }
    }

    fn finish(&self, block: &mut RawBlock, mapped: bool) -> Result<()> {
        // SAFETY: both are new and of this device, and the memory is as large and of a type as the buffer's requirements say.
        unsafe { self.raw.bind_buffer_memory(block.buffer, block.memory, 0) }.map_err(failed("vkBindBufferMemory"))?;
        let info = vk::BufferDeviceAddressInfo::default().buffer(block.buffer);
        // SAFETY: the buffer is bound and made with the usage for addresses.
        block.address = unsafe { self.raw.get_buffer_device_address(&info) };
        if !block.address.is_multiple_of(GRANULE) {
            return Err(Fault::wrong(format!("the driver placed a block at {:#x}, no multiple of {GRANULE}", block.address)));
        }
        if mapped {
            // SAFETY: the memory is new, so not mapped yet, and its type is host-visible by the choice for a use of the host's.
            let pointer = unsafe { self.raw.map_memory(block.memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()) };
            block.mapped = NonNull::new(pointer.map_err(failed("vkMapMemory"))?.cast());
        }
        Ok(())
    }

    /// Destroys a block; freeing its memory unmaps it.
    pub(crate) fn drop_block(&self, block: RawBlock) {
        if self.is_stuck() {
            return;
        }
        // SAFETY: the pools give a block back once no range of it is in use, and ranges go back behind the last submit that may use them.
        unsafe { self.raw.destroy_buffer(block.buffer, None) };
        // SAFETY: as above; no buffer is bound to it any more.
        unsafe { self.raw.free_memory(block.memory, None) };
    }
}
