//! The memory tables of real devices, for tests.

use super::types::{Heap, Memory, MemoryType, TypeFlags};

/// A table from heaps (bytes, device-local) and types (heap, letters: d local, v visible, c coherent, k cached, s special).
pub(crate) fn table(heaps: &[(u64, bool)], types: &[(usize, &str)]) -> Memory {
    let flags = |text: &str| TypeFlags {
        device_local: text.contains('d'),
        host_visible: text.contains('v'),
        host_coherent: text.contains('c'),
        host_cached: text.contains('k'),
        special: text.contains('s'),
    };
    Memory {
        heaps: heaps.iter().map(|&(bytes, device_local)| Heap { bytes, device_local }).collect(),
        types: types.iter().map(|&(heap, text)| MemoryType { heap, flags: flags(text) }).collect(),
    }
}

const MIB: u64 = 1 << 20;

/// An RTX 3070 with its launch firmware: a window of 246 MiB of 8 GiB.
pub(crate) fn nvidia_without_rebar() -> Memory {
    table(&[(8192 * MIB, true), (32000 * MIB, false), (246 * MIB, true)], &[(1, ""), (0, "d"), (1, "vc"), (1, "vck"), (2, "dvc")])
}

/// An H200, driver 580: everything is host-visible, by its own word.
pub(crate) fn nvidia_with_rebar() -> Memory {
    table(&[(150_754_820_096, true), (101_361_423_360, false)], &[(1, ""), (0, "d"), (1, "vc"), (1, "vck"), (0, "dvc")])
}

/// RADV on a discrete card without ReBAR, with AMD's uncached types.
pub(crate) fn radv_without_rebar() -> Memory {
    table(
        &[(7936 * MIB, true), (32000 * MIB, false), (256 * MIB, true)],
        &[(0, "d"), (0, "d"), (1, "vc"), (2, "dvc"), (2, "dvc"), (1, "vck"), (0, "ds"), (1, "vcs"), (2, "dvcs"), (1, "vcks")],
    )
}

/// RADV on a discrete card with ReBAR.
pub(crate) fn radv_with_rebar() -> Memory {
    table(
        &[(24560 * MIB, true), (32000 * MIB, false)],
        &[(0, "d"), (1, "vc"), (0, "dvc"), (1, "vck"), (0, "ds"), (1, "vcs"), (0, "dvcs"), (1, "vcks")],
    )
}

/// A Radeon 780M: a system heap, and a heap that calls itself local.
pub(crate) fn radv_integrated() -> Memory {
    table(
        &[(10_733 * MIB, false), (21_466 * MIB, true)],
        &[(1, "d"), (0, "vc"), (1, "dvc"), (0, "vck"), (1, "dvck"), (1, "ds"), (0, "vcs")],
    )
}

/// Intel's integrated GPUs: one heap for everything.
pub(crate) fn intel_integrated() -> Memory {
    table(&[(24_000 * MIB, true)], &[(0, "d"), (0, "dvc"), (0, "dvck")])
}

/// Lavapipe and SwiftShader.
pub(crate) fn software() -> Memory {
    table(&[(2048 * MIB, true)], &[(0, "dvck")])
}

/// The mock driver, as it says itself: two heaps, split types.
pub(crate) fn mock() -> Memory {
    table(&[(8_000_000_000, false), (8_000_000_000, true)], &[(0, "vc"), (0, "vk"), (1, "dvck"), (1, "ds"), (1, "ds"), (1, "d")])
}
