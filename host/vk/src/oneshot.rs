//! Commands that are recorded, run and waited for at once: rare work such as the first fill of a block.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering;

use ash::vk;

use crate::device::Inner;
use crate::fault::{Fault, Result, failed};

impl Inner {
    /// Fills a buffer with zeros, on the device.
    pub(crate) fn fill(&self, buffer: vk::Buffer) -> Result<()> {
        self.once(|commands| {
            // SAFETY: the buffer is whole, bound, made with the usage for it, and used by nobody else yet.
            unsafe { self.raw.cmd_fill_buffer(commands, buffer, 0, vk::WHOLE_SIZE, 0) };
        })
    }

    fn once(&self, record: impl FnOnce(vk::CommandBuffer)) -> Result<()> {
        self.check()?;
        let pool = self.command_pool(self.queues.main.family)?;
        let fence = self.fence();
        let done = fence.and_then(|fence| {
            let run = self.command_buffer(pool).and_then(|commands| self.run_once(commands, fence, record));
            if !self.is_stuck() {
                // SAFETY: the fence was made here; the device is done with it, or lost and has stopped.
                unsafe { self.raw.destroy_fence(fence, None) };
            }
            run
        });
        if !self.is_stuck() {
            // SAFETY: as above, for the pool and its one command buffer.
            unsafe { self.raw.destroy_command_pool(pool, None) };
        }
        done
    }

    fn run_once(&self, commands: vk::CommandBuffer, fence: vk::Fence, record: impl FnOnce(vk::CommandBuffer)) -> Result<()> {
        let begin = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the command buffer is new and nobody else's.
        unsafe { self.raw.begin_command_buffer(commands, &begin) }.map_err(failed("vkBeginCommandBuffer"))?;
        record(commands);
        // SAFETY: it is being recorded.
        unsafe { self.raw.end_command_buffer(commands) }.map_err(failed("vkEndCommandBuffer"))?;
        let buffers = [commands];
        let submit = [vk::SubmitInfo::default().command_buffers(&buffers)];
        {
            let queue = self.main.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            // SAFETY: the lock keeps others off the queue; the command buffer is recorded and the fence unsignalled.
            self.note(unsafe { self.raw.queue_submit(*queue, &submit, fence) }.map_err(failed("vkQueueSubmit")))?;
        }
        self.wait_fence(fence)
    }

    /// Waits for a fence; one that fails or does not come is a lost device, since the work behind it may still run.
    pub(crate) fn wait_fence(&self, fence: vk::Fence) -> Result<()> {
        let nanoseconds = u64::try_from(self.patience.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: the fence is of this device and lives until the caller destroys it.
        let waited = unsafe { self.raw.wait_for_fences(&[fence], true, nanoseconds) };
        self.note(waited.map_err(|result| self.lost_in("vkWaitForFences", result)))
    }

    /// The fault of a wait that failed. One that ran out of patience leaves a device that may still run.
    pub(crate) fn lost_in(&self, during: &'static str, result: vk::Result) -> Fault {
        if result == vk::Result::TIMEOUT {
            self.stuck.store(true, Ordering::Release);
            return Fault::Lost { during, why: format!("no answer in {} s", self.patience.as_secs_f32()) };
        }
        Fault::Lost { during, why: format!("{result:?}") }
    }

    pub(crate) fn command_pool(&self, family: u32) -> Result<vk::CommandPool> {
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(family).flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER);
        // SAFETY: the family is one of the device's.
        unsafe { self.raw.create_command_pool(&info, None) }.map_err(failed("vkCreateCommandPool"))
    }

    pub(crate) fn command_buffer(&self, pool: vk::CommandPool) -> Result<vk::CommandBuffer> {
        let info =
            vk::CommandBufferAllocateInfo::default().command_pool(pool).level(vk::CommandBufferLevel::PRIMARY).command_buffer_count(1);
        // SAFETY: the pool is of this device and nobody else uses it now.
        let made = unsafe { self.raw.allocate_command_buffers(&info) }.map_err(failed("vkAllocateCommandBuffers"))?;
        made.first().copied().ok_or_else(|| Fault::wrong("vkAllocateCommandBuffers gave none"))
    }

    pub(crate) fn fence(&self) -> Result<vk::Fence> {
        // SAFETY: there is no condition.
        unsafe { self.raw.create_fence(&vk::FenceCreateInfo::default(), None) }.map_err(failed("vkCreateFence"))
    }
}
