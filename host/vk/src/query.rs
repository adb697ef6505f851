//! Reads a device's facts.
#![allow(unsafe_code)]

use std::ffi::CStr;

use ash::vk;

use crate::blocks::USAGE;
use crate::facts::{DeviceFacts, DeviceKind, Driver, Element, Family, Features, Limits, MatrixShape, Pci, Subgroups, Version};
use crate::instance::InstanceHold;
use crate::memory::books::HeapBudget;
use crate::memory::{Heap, Memory, MemoryType, TypeFlags};

/// The extensions that a device lists.
pub(crate) struct Extensions(Vec<vk::ExtensionProperties>);

impl Extensions {
    pub(crate) fn of(instance: &InstanceHold, device: vk::PhysicalDevice) -> Self {
        // SAFETY: the device comes from this instance.
        Self(unsafe { instance.raw.enumerate_device_extension_properties(device) }.unwrap_or_default())
    }

    pub(crate) fn has(&self, name: &CStr) -> bool {
        self.0.iter().any(|listed| listed.extension_name_as_c_str() == Ok(name))
    }
}

/// The structures that drivers fill.
#[derive(Default)]
struct Raw<'a> {
    v11: vk::PhysicalDeviceVulkan11Properties<'a>,
    v12: vk::PhysicalDeviceVulkan12Properties<'a>,
    sizes: vk::PhysicalDeviceSubgroupSizeControlProperties<'a>,
    maintenance4: vk::PhysicalDeviceMaintenance4Properties<'a>,
    dot: vk::PhysicalDeviceShaderIntegerDotProductProperties<'a>,
    import: vk::PhysicalDeviceExternalMemoryHostPropertiesEXT<'a>,
    pci: vk::PhysicalDevicePCIBusInfoPropertiesEXT<'a>,
    cores: vk::PhysicalDeviceShaderCoreProperties2AMD<'a>,
}

/// The same for features.
#[derive(Default)]
struct RawFeatures<'a> {
    v11: vk::PhysicalDeviceVulkan11Features<'a>,
    v12: vk::PhysicalDeviceVulkan12Features<'a>,
    sizes: vk::PhysicalDeviceSubgroupSizeControlFeatures<'a>,
    dot: vk::PhysicalDeviceShaderIntegerDotProductFeatures<'a>,
    matrix: vk::PhysicalDeviceCooperativeMatrixFeaturesKHR<'a>,
    priority: vk::PhysicalDeviceMemoryPriorityFeaturesEXT<'a>,
}

/// A device's facts. One older than Vulkan 1.2 is only named: it has none of the structures, and is refused anyway.
pub(crate) fn facts(instance: &InstanceHold, index: usize, device: vk::PhysicalDevice) -> DeviceFacts {
    // SAFETY: the device comes from this instance.
    let basic = unsafe { instance.raw.get_physical_device_properties(device) };
    let api = Version { major: vk::api_version_major(basic.api_version), minor: vk::api_version_minor(basic.api_version) };
    let mut facts = DeviceFacts {
        index: u32::try_from(index).unwrap_or(u32::MAX),
        name: text(&basic.device_name),
        kind: kind(basic.device_type),
        api,
        vendor: basic.vendor_id,
        device: basic.device_id,
        stamp_ns: basic.limits.timestamp_period,
        memory: memory(instance, device),
        families: families(instance, device),
        ..DeviceFacts::default()
    };
    facts.driver.version = basic.driver_version;
    facts.driver.cache_uuid = basic.pipeline_cache_uuid;
    if api < (Version { major: 1, minor: 2 }) {
        return facts;
    }
    let extensions = Extensions::of(instance, device);
    properties(instance, device, &extensions, &basic.limits, &mut facts);
    features(instance, device, &extensions, &mut facts);
    if facts.features.cooperative_matrix {
        facts.matrices = matrices(instance, device);
    }
    facts
}

fn properties(
    instance: &InstanceHold,
    device: vk::PhysicalDevice,
    extensions: &Extensions,
    limits: &vk::PhysicalDeviceLimits,
    facts: &mut DeviceFacts,
) {
    let newer = facts.api >= (Version { major: 1, minor: 3 });
    let mut raw = Raw::default();
    let mut chain = vk::PhysicalDeviceProperties2::default().push_next(&mut raw.v11).push_next(&mut raw.v12);
    let sized = newer || extensions.has(ash::ext::subgroup_size_control::NAME);
    let (dots, large) =
        (newer || extensions.has(ash::khr::shader_integer_dot_product::NAME), newer || extensions.has(ash::khr::maintenance4::NAME));
    let import = extensions.has(ash::ext::external_memory_host::NAME);
    let (pci, cores) = (extensions.has(ash::ext::pci_bus_info::NAME), extensions.has(ash::amd::shader_core_properties2::NAME));
    if sized {
        chain = chain.push_next(&mut raw.sizes);
    }
    if dots {
        chain = chain.push_next(&mut raw.dot);
    }
    if large {
        chain = chain.push_next(&mut raw.maintenance4);
    }
    if import {
        chain = chain.push_next(&mut raw.import);
    }
    if pci {
        chain = chain.push_next(&mut raw.pci);
    }
    if cores {
        chain = chain.push_next(&mut raw.cores);
    }
    // SAFETY: the chain has only structures that the device's version or an extension that it lists knows, each once.
    unsafe { instance.raw.get_physical_device_properties2(device, &mut chain) };
    facts.uuid = raw.v11.device_uuid;
    facts.driver = Driver {
        id: raw.v12.driver_id.as_raw(),
        name: text(&raw.v12.driver_name),
        info: text(&raw.v12.driver_info),
        uuid: raw.v11.driver_uuid,
        ..std::mem::take(&mut facts.driver)
    };
    let place = [raw.pci.pci_domain, raw.pci.pci_bus, raw.pci.pci_device, raw.pci.pci_function];
    facts.pci = pci.then_some(Pci { place });
    // The core extension beside it counts units; this one says only which are on, as a mask of none where it knows nothing.
    facts.compute_units = (cores && raw.cores.active_compute_unit_count > 0).then_some(raw.cores.active_compute_unit_count);
    facts.features.integer_dot_fast = dots && raw.dot.integer_dot_product4x8_bit_packed_signed_accelerated != 0;
    facts.subgroups = subgroups(&raw, sized);
    facts.limits = Limits {
        allocation: raw.v11.max_memory_allocation_size,
        allocations: limits.max_memory_allocation_count,
        buffer: if large { raw.maintenance4.max_buffer_size } else { raw.v11.max_memory_allocation_size },
        binding: limits.max_storage_buffer_range.into(),
        binding_align: limits.min_storage_buffer_offset_alignment,
        bindings: limits.max_per_stage_descriptor_storage_buffers.min(limits.max_descriptor_set_storage_buffers),
        push: limits.max_push_constants_size,
        shared: limits.max_compute_shared_memory_size,
        invocations: limits.max_compute_work_group_invocations,
        groups: limits.max_compute_work_group_count,
        import_align: if import && imports_buffers(instance, device) { raw.import.min_imported_host_pointer_alignment } else { 0 },
    };
}

/// Whether the host's pages can become a buffer like ours: a driver may list the extension and import them for nothing that we use.
fn imports_buffers(instance: &InstanceHold, device: vk::PhysicalDevice) -> bool {
    let kind = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
    let info = vk::PhysicalDeviceExternalBufferInfo::default().usage(USAGE).handle_type(kind);
    let mut said = vk::ExternalBufferProperties::default();
    // SAFETY: the device comes from this instance, and the call is part of Vulkan 1.1.
    unsafe { instance.raw.get_physical_device_external_buffer_properties(device, &info, &mut said) };
    said.external_memory_properties.external_memory_features.contains(vk::ExternalMemoryFeatureFlags::IMPORTABLE)
}

fn subgroups(raw: &Raw<'_>, sized: bool) -> Subgroups {
    let operations = raw.v11.subgroup_supported_operations;
    let compute = raw.v11.subgroup_supported_stages.contains(vk::ShaderStageFlags::COMPUTE);
    let has = |operation| compute && operations.contains(operation);
    let size = raw.v11.subgroup_size;
    let fixed = sized && raw.sizes.required_subgroup_size_stages.contains(vk::ShaderStageFlags::COMPUTE);
    Subgroups {
        size,
        of_workgroup: if fixed { raw.sizes.max_compute_workgroup_subgroups } else { 0 },
        range: if fixed { (raw.sizes.min_subgroup_size, raw.sizes.max_subgroup_size) } else { (size, size) },
        // Whether the feature is there as well is added with the features.
        control: fixed,
        arithmetic: has(vk::SubgroupFeatureFlags::ARITHMETIC),
        clustered: has(vk::SubgroupFeatureFlags::CLUSTERED),
        shuffle: has(vk::SubgroupFeatureFlags::SHUFFLE),
        ballot: has(vk::SubgroupFeatureFlags::BALLOT),
        vote: has(vk::SubgroupFeatureFlags::VOTE),
    }
}

fn features(instance: &InstanceHold, device: vk::PhysicalDevice, extensions: &Extensions, facts: &mut DeviceFacts) {
    let newer = facts.api >= (Version { major: 1, minor: 3 });
    let mut raw = RawFeatures::default();
    let mut chain = vk::PhysicalDeviceFeatures2::default().push_next(&mut raw.v11).push_next(&mut raw.v12);
    if newer || extensions.has(ash::ext::subgroup_size_control::NAME) {
        chain = chain.push_next(&mut raw.sizes);
    }
    if newer || extensions.has(ash::khr::shader_integer_dot_product::NAME) {
        chain = chain.push_next(&mut raw.dot);
    }
    if extensions.has(ash::khr::cooperative_matrix::NAME) {
        chain = chain.push_next(&mut raw.matrix);
    }
    if extensions.has(ash::ext::memory_priority::NAME) {
        chain = chain.push_next(&mut raw.priority);
    }
    // SAFETY: the chain has only structures that the device's version or an extension that it lists knows, each once.
    unsafe { instance.raw.get_physical_device_features2(device, &mut chain) };
    let basic = chain.features;
    let integer_dot = raw.dot.shader_integer_dot_product != 0;
    facts.subgroups.control &= raw.sizes.subgroup_size_control != 0;
    if !facts.subgroups.control {
        facts.subgroups.range = (facts.subgroups.size, facts.subgroups.size);
    }
    facts.features = Features {
        buffer_address: raw.v12.buffer_device_address != 0,
        timeline: raw.v12.timeline_semaphore != 0,
        memory_budget: extensions.has(ash::ext::memory_budget::NAME),
        memory_priority: raw.priority.memory_priority != 0,
        host_import: facts.limits.import_align > 0,
        cooperative_matrix: raw.matrix.cooperative_matrix != 0,
        integer_dot,
        integer_dot_fast: integer_dot && facts.features.integer_dot_fast,
        storage8: raw.v12.storage_buffer8_bit_access != 0,
        storage16: raw.v11.storage_buffer16_bit_access != 0,
        float16: raw.v12.shader_float16 != 0,
        int8: raw.v12.shader_int8 != 0,
        int16: basic.shader_int16 != 0,
        int64: basic.shader_int64 != 0,
        // Without device scope the model would forbid what atomics without it may do.
        memory_model: raw.v12.vulkan_memory_model != 0 && raw.v12.vulkan_memory_model_device_scope != 0,
        scalar_layout: raw.v12.scalar_block_layout != 0,
        robust: basic.robust_buffer_access != 0,
    };
}

fn matrices(instance: &InstanceHold, device: vk::PhysicalDevice) -> Vec<MatrixShape> {
    let calls = ash::khr::cooperative_matrix::Instance::new(&instance.entry, &instance.raw);
    // SAFETY: the device comes from this instance and has the extension.
    let listed = unsafe { calls.get_physical_device_cooperative_matrix_properties(device) }.unwrap_or_default();
    let of_subgroups = listed.iter().filter(|one| one.scope == vk::ScopeKHR::SUBGROUP);
    let shape = |one: &vk::CooperativeMatrixPropertiesKHR<'_>| MatrixShape {
        size: [one.m_size, one.n_size, one.k_size],
        elements: [one.a_type, one.b_type, one.c_type, one.result_type].map(element),
        saturating: one.saturating_accumulation != 0,
    };
    of_subgroups.map(shape).collect()
}

fn element(kind: vk::ComponentTypeKHR) -> Element {
    match kind {
        vk::ComponentTypeKHR::FLOAT16 => Element::F16,
        vk::ComponentTypeKHR::FLOAT32 => Element::F32,
        vk::ComponentTypeKHR::FLOAT64 => Element::F64,
        vk::ComponentTypeKHR::SINT8 => Element::Signed(8),
        vk::ComponentTypeKHR::SINT16 => Element::Signed(16),
        vk::ComponentTypeKHR::SINT32 => Element::Signed(32),
        vk::ComponentTypeKHR::SINT64 => Element::Signed(64),
        vk::ComponentTypeKHR::UINT8 => Element::Unsigned(8),
        vk::ComponentTypeKHR::UINT16 => Element::Unsigned(16),
        vk::ComponentTypeKHR::UINT32 => Element::Unsigned(32),
        vk::ComponentTypeKHR::UINT64 => Element::Unsigned(64),
        // Newer than the headers that this is built with: VK_KHR_shader_bfloat16.
        other if other.as_raw() == 1_000_141_000 => Element::Bf16,
        other => Element::Unknown(other.as_raw()),
    }
}

fn memory(instance: &InstanceHold, device: vk::PhysicalDevice) -> Memory {
    // SAFETY: the device comes from this instance.
    let raw = unsafe { instance.raw.get_physical_device_memory_properties(device) };
    let special = vk::MemoryPropertyFlags::LAZILY_ALLOCATED
        | vk::MemoryPropertyFlags::PROTECTED
        | vk::MemoryPropertyFlags::DEVICE_COHERENT_AMD
        | vk::MemoryPropertyFlags::DEVICE_UNCACHED_AMD
        | vk::MemoryPropertyFlags::RDMA_CAPABLE_NV;
    let flags = |flags: vk::MemoryPropertyFlags| TypeFlags {
        device_local: flags.contains(vk::MemoryPropertyFlags::DEVICE_LOCAL),
        host_visible: flags.contains(vk::MemoryPropertyFlags::HOST_VISIBLE),
        host_coherent: flags.contains(vk::MemoryPropertyFlags::HOST_COHERENT),
        host_cached: flags.contains(vk::MemoryPropertyFlags::HOST_CACHED),
        special: flags.intersects(special),
    };
    let heap = |heap: &vk::MemoryHeap| Heap { bytes: heap.size, device_local: heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL) };
    let kind = |kind: &vk::MemoryType| MemoryType { heap: kind.heap_index as usize, flags: flags(kind.property_flags) };
    Memory { types: raw.memory_types_as_slice().iter().map(kind).collect(), heaps: raw.memory_heaps_as_slice().iter().map(heap).collect() }
}

/// The budgets of a device's heaps, now. Only for a device that lists the extension.
pub(crate) fn budgets(instance: &InstanceHold, device: vk::PhysicalDevice) -> Vec<HeapBudget> {
    let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
    let mut chain = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
    // SAFETY: the device comes from this instance and lists the extension, as the caller knows.
    unsafe { instance.raw.get_physical_device_memory_properties2(device, &mut chain) };
    let heaps = chain.memory_properties.memory_heap_count as usize;
    let said = budget.heap_budget.iter().zip(&budget.heap_usage).take(heaps);
    said.map(|(&budget, &used)| HeapBudget { budget, used }).collect()
}

fn families(instance: &InstanceHold, device: vk::PhysicalDevice) -> Vec<Family> {
    // SAFETY: the device comes from this instance.
    let raw = unsafe { instance.raw.get_physical_device_queue_family_properties(device) };
    let family = |one: &vk::QueueFamilyProperties| Family {
        count: one.queue_count,
        graphics: one.queue_flags.contains(vk::QueueFlags::GRAPHICS),
        compute: one.queue_flags.contains(vk::QueueFlags::COMPUTE),
        transfer: one.queue_flags.intersects(vk::QueueFlags::TRANSFER | vk::QueueFlags::COMPUTE | vk::QueueFlags::GRAPHICS),
        stamp_bits: one.timestamp_valid_bits,
    };
    raw.iter().map(family).collect()
}

fn kind(kind: vk::PhysicalDeviceType) -> DeviceKind {
    match kind {
        vk::PhysicalDeviceType::DISCRETE_GPU => DeviceKind::Discrete,
        vk::PhysicalDeviceType::INTEGRATED_GPU => DeviceKind::Integrated,
        vk::PhysicalDeviceType::VIRTUAL_GPU => DeviceKind::Virtual,
        vk::PhysicalDeviceType::CPU => DeviceKind::Cpu,
        _ => DeviceKind::Other,
    }
}

/// A name that a driver gives: up to its zero, or all of it.
fn text(raw: &[std::ffi::c_char]) -> String {
    #[allow(clippy::cast_sign_loss)] // A char of C is signed on some systems; its bits are what counts.
    let bytes: Vec<u8> = raw.iter().map(|&c| c as u8).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
