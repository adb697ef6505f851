//! Device memory as decisions and books, without a device: which type serves which use ([`types`]), whether weights go up through a mapping
//! or through staging ([`staged`]), how much is free ([`books`]), and ranges in large blocks ([`pools`]).

pub mod books;
pub mod pools;
#[cfg(test)]
mod pools_tests;
#[cfg(test)]
pub(crate) mod samples;
pub mod staged;
pub mod types;

pub use types::{Heap, Memory, MemoryType, TypeFlags, Use};

/// A mebibyte.
pub const MIB: u64 = 1 << 20;
/// A gibibyte.
pub const GIB: u64 = 1 << 30;

/// What memory is for. Each has blocks of its own, its own limit, and its own place in the order in which a driver may evict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pool {
    /// Dense weights.
    Weights,
    /// Routed experts.
    Experts,
    /// Caches of keys and values, and other states.
    Kv,
    /// What one step needs; only the device touches it.
    Scratch,
    /// What the host writes and the device reads, step by step.
    Upload,
    /// What the host reads back.
    Readback,
}

impl Pool {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 6] = [Self::Weights, Self::Experts, Self::Kv, Self::Scratch, Self::Upload, Self::Readback];

    /// Its name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weights => "weights",
            Self::Experts => "experts",
            Self::Kv => "kv",
            Self::Scratch => "scratch",
            Self::Upload => "upload",
            Self::Readback => "readback",
        }
    }

    /// Who touches its memory.
    pub const fn purpose(self) -> Use {
        match self {
            Self::Weights | Self::Experts | Self::Kv => Use::Resident,
            Self::Scratch => Use::Device,
            Self::Upload => Use::HostWrites,
            Self::Readback => Use::HostReads,
        }
    }

    /// Its priority where the driver takes one: under pressure experts go first, since the host can run them.
    pub const fn priority(self) -> f32 {
        match self {
            Self::Experts => 0.25,
            Self::Weights | Self::Kv => 0.75,
            Self::Scratch | Self::Upload | Self::Readback => 1.0,
        }
    }
}
