//! A device as plain data: what it is, what it can do, how much it has. Read once ([`crate::Instance::devices`]) and passed to decisions,
//! so that they can be tested with devices that are not there.

use std::fmt;

use crate::memory::Memory;

/// What a device is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceKind {
    /// A card with its own memory.
    Discrete,
    /// A GPU that shares the CPU's memory.
    Integrated,
    /// A GPU of a virtual machine.
    Virtual,
    /// The CPU itself, as a Vulkan device.
    Cpu,
    /// None of these.
    #[default]
    Other,
}

/// A version of Vulkan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Major.
    pub major: u32,
    /// Minor.
    pub minor: u32,
}

/// Where a device sits on the PCI bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pci {
    /// Domain, bus, device, function.
    pub place: [u32; 4],
}

/// Who drives the device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Driver {
    /// `VkDriverId`, which names the driver.
    pub id: i32,
    /// Its name.
    pub name: String,
    /// Its version in words.
    pub info: String,
    /// Its version as a number, in the vendor's own packing.
    pub version: u32,
    /// Differs from build to build.
    pub uuid: [u8; 16],
    /// What a pipeline cache must match.
    pub cache_uuid: [u8; 16],
}

/// What subgroups can do in compute shaders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Subgroups {
    /// The size that the driver reports.
    pub size: u32,
    /// The least and the most that a pipeline may require; both are `size` without size control.
    pub range: (u32, u32),
    /// Whether a pipeline may require a size.
    pub control: bool,
    /// Subgroups of a workgroup at most, where a pipeline requires a size; else 0, which is no limit.
    pub of_workgroup: u32,
    /// Sums and the like over a subgroup.
    pub arithmetic: bool,
    /// The same over parts of a subgroup.
    pub clustered: bool,
    /// Values from other lanes.
    pub shuffle: bool,
    /// Votes as bits.
    pub ballot: bool,
    /// Votes.
    pub vote: bool,
}

/// What a device can do beyond what is required. Each is asked for by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    /// Required: buffers have addresses.
    pub buffer_address: bool,
    /// Required: semaphores that count.
    pub timeline: bool,
    /// How much memory is free can be asked.
    pub memory_budget: bool,
    /// Allocations have priorities.
    pub memory_priority: bool,
    /// The host's pages can be read in place.
    pub host_import: bool,
    /// Products of small matrices by a subgroup (KHR).
    pub cooperative_matrix: bool,
    /// Sums of four products of 8-bit integers.
    pub integer_dot: bool,
    /// The same in hardware, for packed signed operands.
    pub integer_dot_fast: bool,
    /// 8-bit values in buffers.
    pub storage8: bool,
    /// 16-bit values in buffers.
    pub storage16: bool,
    /// Arithmetic of f16.
    pub float16: bool,
    /// Arithmetic of 8-bit integers.
    pub int8: bool,
    /// Arithmetic of 16-bit integers.
    pub int16: bool,
    /// Arithmetic of 64-bit integers.
    pub int64: bool,
    /// Vulkan's memory model with device scope, which matrix units need.
    pub memory_model: bool,
    /// Structures in buffers laid out as in C.
    pub scalar_layout: bool,
    /// A kernel that leaves a bound buffer reads and writes nothing else. Only on where it was asked for.
    pub robust: bool,
}

/// A type of elements of a cooperative matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// f16.
    F16,
    /// bf16.
    Bf16,
    /// f32.
    F32,
    /// f64.
    F64,
    /// Signed, of so many bits.
    Signed(u8),
    /// Unsigned, of so many bits.
    Unsigned(u8),
    /// One that this program does not know, by Vulkan's number.
    Unknown(i32),
}

/// One shape that a subgroup's matrix units multiply: `M x K` by `K x N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixShape {
    /// M, N and K.
    pub size: [u32; 3],
    /// Elements of both factors, the sum that goes in, and the one that comes out.
    pub elements: [Element; 4],
    /// Whether integer sums saturate.
    pub saturating: bool,
}

/// What may be asked of the device at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one allocation.
    pub allocation: u64,
    /// Allocations at a time.
    pub allocations: u32,
    /// Bytes of one buffer.
    pub buffer: u64,
    /// Bytes that a shader reaches through one binding.
    pub binding: u64,
    /// Alignment of a binding.
    pub binding_align: u64,
    /// Buffers that a kernel can be bound to.
    pub bindings: u32,
    /// Bytes of push constants.
    pub push: u32,
    /// Bytes of shared memory of a workgroup.
    pub shared: u32,
    /// Invocations of a workgroup.
    pub invocations: u32,
    /// Workgroups along each axis of a dispatch.
    pub groups: [u32; 3],
    /// Alignment of the host's pages that can be read in place; 0 where none can.
    pub import_align: u64,
}

/// A family of queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Family {
    /// How many queues it has.
    pub count: u32,
    /// It runs graphics.
    pub graphics: bool,
    /// It runs compute shaders.
    pub compute: bool,
    /// It copies; those that run shaders always do.
    pub transfer: bool,
    /// Bits of its timestamps that count; 0 where it has none.
    pub stamp_bits: u32,
}

/// A device.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeviceFacts {
    /// Its number in the loader's list.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: DeviceKind,
    /// The version of Vulkan that it has.
    pub api: Version,
    /// Its vendor's number on the PCI bus.
    pub vendor: u32,
    /// Its own number there.
    pub device: u32,
    /// The same for one device under two drivers.
    pub uuid: [u8; 16],
    /// Where it sits, where the driver says so.
    pub pci: Option<Pci>,
    /// Who drives it.
    pub driver: Driver,
    /// Its memory.
    pub memory: Memory,
    /// Its limits.
    pub limits: Limits,
    /// Its subgroups.
    pub subgroups: Subgroups,
    /// What it can do.
    pub features: Features,
    /// What its matrix units multiply.
    pub matrices: Vec<MatrixShape>,
    /// Its queues.
    pub families: Vec<Family>,
    /// Nanoseconds of a tick of its timestamps.
    pub stamp_ns: f32,
    /// Compute units that work, where the driver says so.
    pub compute_units: Option<u32>,
}

impl DeviceFacts {
    /// Whether its memory is the CPU's.
    pub fn shares_memory(&self) -> bool {
        matches!(self.kind, DeviceKind::Integrated | DeviceKind::Cpu)
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Discrete => "discrete",
            Self::Integrated => "integrated",
            Self::Virtual => "virtual",
            Self::Cpu => "CPU",
            Self::Other => "other",
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
