//! The host's own pages as a buffer of the device: memory that the device reads in place, or copies from without a second copy by the CPU.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;

use ash::vk;

use crate::blocks::USAGE;
use crate::buffer::{Place, Region};
use crate::device::{Device, Inner, Retired};
use crate::fault::{Fault, Result, failed};

/// The host's memory as the device sees it.
pub(crate) struct RawImport {
    pub(crate) buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    /// Pages that we own, freed after the device has let go of them.
    pages: Option<Pages>,
}

/// Pages from the allocator.
struct Pages {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the pages are plain memory with one owner.
unsafe impl Send for Pages {}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: `start` came from the allocator with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

impl RawImport {
    /// Lets go of the memory. Nothing on the device may use it any more.
    pub(crate) fn destroy(self, raw: &ash::Device) {
        // SAFETY: no submit uses it any more, as the caller knows.
        unsafe { raw.destroy_buffer(self.buffer, None) };
        // SAFETY: as above; no buffer is bound to it any more.
        unsafe { raw.free_memory(self.memory, None) };
        drop(self.pages);
    }
}

impl Inner {
    /// The alignment of pages that can be imported, where any can.
    pub(crate) fn import_align(&self) -> Option<usize> {
        self.import.as_ref().and_then(|_| usize::try_from(self.facts.limits.import_align).ok()).filter(|align| align.is_power_of_two())
    }

    /// Makes `bytes` at `start` a buffer of the device. Both must be multiples of the alignment; a driver may still refuse, and does for
    /// some mappings of files.
    ///
    /// # Safety
    ///
    /// The memory must stay as it is, allocated, until the import is destroyed, and nobody may write it while the device reads it.
    pub(crate) unsafe fn import(&self, start: *const u8, bytes: usize) -> Result<RawImport> {
        self.check()?;
        let Some(calls) = &self.import else { return Err(Fault::wrong("the device does not read the host's pages in place")) };
        let kind = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
        let mut said = vk::MemoryHostPointerPropertiesEXT::default();
        let ask = calls.fp().get_memory_host_pointer_properties_ext;
        // SAFETY: the function is the device's own, the pointer is to live memory, and `said` is a structure of the kind it fills.
        let result = unsafe { ask(self.raw.handle(), kind, start.cast(), &mut said) };
        result.result().map_err(failed("vkGetMemoryHostPointerPropertiesEXT"))?;
        let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(kind);
        let info = vk::BufferCreateInfo::default().size(bytes as u64).usage(USAGE).push_next(&mut external);
        let info = match self.families.len() {
            0 | 1 => info.sharing_mode(vk::SharingMode::EXCLUSIVE),
            _ => info.sharing_mode(vk::SharingMode::CONCURRENT).queue_family_indices(&self.families),
        };
        // SAFETY: `info` is complete.
        let buffer = unsafe { self.raw.create_buffer(&info, None) }.map_err(failed("vkCreateBuffer"))?;
        let made = self.import_memory(buffer, start, bytes, said.memory_type_bits);
        if made.is_err() {
            // SAFETY: nobody has seen it.
            unsafe { self.raw.destroy_buffer(buffer, None) };
        }
        Ok(RawImport { buffer, memory: made?, pages: None })
    }

    fn import_memory(&self, buffer: vk::Buffer, start: *const u8, bytes: usize, types: u32) -> Result<vk::DeviceMemory> {
        // SAFETY: the buffer is of this device.
        let needs = unsafe { self.raw.get_buffer_memory_requirements(buffer) };
        let types = types & needs.memory_type_bits;
        // A cached type, where there is one: the host keeps on using these pages.
        let cached = |at: &usize| self.facts.memory.types.get(*at).is_some_and(|kind| kind.flags.host_cached);
        let fits = || (0..32usize).filter(|at| types >> at & 1 == 1);
        let at = fits().find(cached).or_else(|| fits().next()).ok_or_else(|| Fault::wrong("no memory type takes these pages"))?;
        if needs.size > bytes as u64 {
            return Err(Fault::wrong("the driver wants more memory for a buffer than its pages have"));
        }
        let mut host = vk::ImportMemoryHostPointerInfoEXT::default()
            .handle_type(vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT)
            .host_pointer(start.cast_mut().cast());
        let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        let index = u32::try_from(at).unwrap_or(0);
        let info = vk::MemoryAllocateInfo::default().allocation_size(bytes as u64).memory_type_index(index);
        let info = info.push_next(&mut flags).push_next(&mut host);
        // SAFETY: the pages live, as the caller of `import` promises, and the type is one that the driver named for them.
        let memory = unsafe { self.raw.allocate_memory(&info, None) }.map_err(failed("vkAllocateMemory"))?;
        // SAFETY: both are new; the memory is large enough and of a type that the buffer allows.
        match unsafe { self.raw.bind_buffer_memory(buffer, memory, 0) } {
            Ok(()) => Ok(memory),
            Err(result) => {
                // SAFETY: nothing is bound to it.
                unsafe { self.raw.free_memory(memory, None) };
                Err(Fault::of("vkBindBufferMemory", result))
            }
        }
    }
}

/// Anonymous pages of the host that the device reads in place: cached for the CPU, and never copied.
pub struct HostPages {
    hold: Arc<PagesHold>,
    bytes: usize,
}

struct PagesHold {
    inner: Arc<Inner>,
    start: NonNull<u8>,
    raw: vk::Buffer,
    import: Option<RawImport>,
    address: u64,
}

// SAFETY: the pointer is to pages that the hold owns. They are written only through `&mut HostPages`.
unsafe impl Send for PagesHold {}
// SAFETY: as above.
unsafe impl Sync for PagesHold {}

impl Device {
    /// Allocates pages and imports them; a fault where the device or this driver does not.
    pub fn host_pages(&self, bytes: u64) -> Result<HostPages> {
        let inner = &self.inner;
        let align = inner.import_align().ok_or_else(|| Fault::wrong("the device does not read the host's pages in place"))?;
        let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes > 0).ok_or_else(|| Fault::wrong("no pages are so many bytes"))?;
        let layout = bytes.checked_next_multiple_of(align).and_then(|whole| Layout::from_size_align(whole, align.max(4096)).ok());
        let layout = layout.ok_or_else(|| Fault::wrong("no pages are so many bytes"))?;
        // SAFETY: the layout's size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) });
        let start = start.ok_or_else(|| Fault::Memory { what: format!("{} bytes of the host's", layout.size()) })?;
        let pages = Pages { start, layout };
        // SAFETY: the pages are owned here and freed behind the import; `HostPages` says who may write when.
        let mut import = unsafe { inner.import(start.as_ptr(), layout.size()) }?;
        import.pages = Some(pages);
        let info = vk::BufferDeviceAddressInfo::default().buffer(import.buffer);
        // SAFETY: the buffer is bound and made with the usage for addresses.
        let address = unsafe { inner.raw.get_buffer_device_address(&info) };
        let hold = PagesHold { inner: Arc::clone(inner), start, raw: import.buffer, import: Some(import), address };
        Ok(HostPages { hold: Arc::new(hold), bytes })
    }
}

impl HostPages {
    /// Their bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the pages are `bytes` long at least, zeroed when made, live, and written by this host only through `&mut self`. Kernels
        // that write them are to be waited for before they are looked at.
        unsafe { std::slice::from_raw_parts(self.hold.start.as_ptr(), self.bytes) }
    }

    /// Their bytes, to write. The next submit sees what is written; one in flight may.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` is the only way to them.
        unsafe { std::slice::from_raw_parts_mut(self.hold.start.as_ptr(), self.bytes) }
    }

    /// Their device address.
    pub fn address(&self) -> u64 {
        self.hold.address
    }
}

impl Region for HostPages {
    fn region(&self) -> Place {
        let hold = &self.hold;
        Place { raw: hold.raw, offset: 0, bytes: self.bytes as u64, device: Arc::as_ptr(&hold.inner), hold: Arc::clone(hold) as _ }
    }
}

impl Drop for PagesHold {
    fn drop(&mut self) {
        if let Some(import) = self.import.take() {
            self.inner.retire(Retired::Import(import));
        }
    }
}
