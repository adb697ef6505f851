//! Which memory type serves which use. Pure, tested with the tables of real devices.

use crate::facts::DeviceKind;

/// What a memory type is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TypeFlags {
    /// Near the device.
    pub device_local: bool,
    /// The host can map it.
    pub host_visible: bool,
    /// What the host writes is seen without a flush.
    pub host_coherent: bool,
    /// The host reads it through its caches.
    pub host_cached: bool,
    /// A vendor's uncached or coherent type, protected or lazily allocated: never what we want.
    pub special: bool,
}

/// A memory type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryType {
    /// What it is.
    pub flags: TypeFlags,
    /// The heap it takes from.
    pub heap: usize,
}

/// A heap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Heap {
    /// Its size.
    pub bytes: u64,
    /// Whether it is the device's own.
    pub device_local: bool,
}

/// A device's memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// Its types, by number.
    pub types: Vec<MemoryType>,
    /// Its heaps, by number.
    pub heaps: Vec<Heap>,
}

impl Memory {
    /// The bytes of the largest device-local heap.
    pub fn largest_local(&self) -> u64 {
        self.heaps.iter().filter(|heap| heap.device_local).map(|heap| heap.bytes).max().unwrap_or(0)
    }

    /// The bytes of the largest device-local heap that the host can map, and the type by which it can.
    pub fn window(&self) -> Option<(u64, usize)> {
        let best = self.best(u32::MAX, |flags| flags.device_local && is_mapped(flags))?;
        Some((self.heaps[self.types[best].heap].bytes, best))
    }

    /// Of the types that pass, the one with the largest heap, the first of equals. Drivers list the better of equals first.
    fn best(&self, allowed: u32, passes: impl Fn(TypeFlags) -> bool) -> Option<usize> {
        let mut best: Option<(u64, usize)> = None;
        for (index, kind) in self.types.iter().enumerate().filter(|(index, _)| *index < 32 && allowed >> index & 1 == 1) {
            let Some(heap) = self.heaps.get(kind.heap).filter(|_| !kind.flags.special && passes(kind.flags)) else { continue };
            if best.is_none_or(|(bytes, _)| heap.bytes > bytes) {
                best = Some((heap.bytes, index));
            }
        }
        best.map(|(_, index)| index)
    }
}

/// Who touches memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Use {
    /// The device alone.
    Device,
    /// Written once, then read by the device for the rest of the run.
    Resident,
    /// The host writes it, the device reads it.
    HostWrites,
    /// The device writes it, the host reads it.
    HostReads,
    /// The host writes it, the device copies from it.
    Staging,
}

/// The types for a use: the one to ask, and another to ask when that is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Types {
    /// The first.
    pub first: usize,
    /// The second.
    pub then: Option<usize>,
}

/// A condition on a type.
type Want = fn(TypeFlags) -> bool;

/// Mapped memory is always coherent here, so that nothing has to be flushed; every driver has such a type.
fn is_mapped(flags: TypeFlags) -> bool {
    flags.host_visible && flags.host_coherent
}

/// Chooses types for a use. `allowed` has a bit for each type that buffers may lie in; `staged` is the decision of [`super::staged`].
///
/// A card and a CPU device take device-local memory where the use allows it, and never system memory in its place without saying so. An
/// integrated GPU with a heap of system memory takes that for everything; what the firmware set apart is asked second. What the
/// host reads back is cached: reading anything else is many times slower.
pub fn choose(memory: &Memory, kind: DeviceKind, allowed: u32, staged: bool, purpose: Use) -> Option<Types> {
    let system: Want = |flags| is_mapped(flags) && !flags.device_local;
    if kind == DeviceKind::Integrated && memory.best(allowed, system).is_some() {
        return of_integrated(memory, allowed, purpose);
    }
    let wants: &[Want] = match (purpose, staged) {
        (Use::Device, _) | (Use::Resident, true) => {
            // On the largest heap, so that a window of the card is left to those who need to map it.
            let largest = memory.largest_local();
            let on_largest: Vec<usize> = (0..memory.types.len()).filter(|&at| memory.heap_of(at) == Some(largest)).collect();
            let mask = on_largest.iter().filter(|&&at| at < 32).fold(0, |mask, at| mask | 1u32 << at) & allowed;
            let hidden = memory.best(mask, |flags| flags.device_local && !flags.host_visible);
            let first = hidden.or_else(|| memory.best(mask, |flags| flags.device_local)).or_else(|| memory.best(allowed, |_| true))?;
            return Some(Types { first, then: None });
        }
        (Use::Resident, false) => {
            let first = memory.best(allowed, |flags| flags.device_local && is_mapped(flags)).or_else(|| memory.best(allowed, is_mapped))?;
            return Some(Types { first, then: None });
        }
        (Use::HostWrites, false) => {
            &[|flags| flags.device_local && is_mapped(flags), |flags| is_mapped(flags) && !flags.device_local, is_mapped]
        }
        (Use::HostWrites, true) | (Use::Staging, _) => &[|flags| is_mapped(flags) && !flags.device_local, is_mapped],
        (Use::HostReads, _) => HOST_READS,
    };
    first_two(memory, allowed, wants)
}

const HOST_READS: &[Want] =
    &[|flags| is_mapped(flags) && flags.host_cached && !flags.device_local, |flags| is_mapped(flags) && flags.host_cached, is_mapped];

fn of_integrated(memory: &Memory, allowed: u32, purpose: Use) -> Option<Types> {
    let wants: &[Want] = match purpose {
        Use::HostReads => HOST_READS,
        // Memory that bypasses the CPU's caches is the cheaper one for the device to read.
        _ => &[|flags| is_mapped(flags) && !flags.device_local && !flags.host_cached, |flags| is_mapped(flags) && !flags.device_local],
    };
    let first = wants.iter().find_map(|want| memory.best(allowed, want))?;
    let then = memory.best(allowed, |flags| flags.device_local && is_mapped(flags));
    Some(Types { first, then: then.filter(|&then| then != first) })
}

fn first_two(memory: &Memory, allowed: u32, wants: &[Want]) -> Option<Types> {
    let mut found = wants.iter().filter_map(|want| memory.best(allowed, want));
    let first = found.next()?;
    Some(Types { first, then: found.find(|&then| then != first) })
}

impl Memory {
    /// The size of a type's heap, where that is device-local.
    fn heap_of(&self, at: usize) -> Option<u64> {
        self.types.get(at).and_then(|kind| self.heaps.get(kind.heap)).filter(|heap| heap.device_local).map(|heap| heap.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::*;
    use super::*;

    const USES: [Use; 5] = [Use::Device, Use::Resident, Use::HostWrites, Use::HostReads, Use::Staging];

    fn firsts(memory: &Memory, kind: DeviceKind, staged: bool) -> [usize; 5] {
        USES.map(|purpose| choose(memory, kind, u32::MAX, staged, purpose).unwrap().first)
    }

    #[test]
    fn cards() {
        // Worked out by hand from the tables: device, resident, host writes, host reads, staging.
        assert_eq!(firsts(&nvidia_without_rebar(), DeviceKind::Discrete, true), [1, 1, 2, 3, 2]);
        assert_eq!(firsts(&nvidia_with_rebar(), DeviceKind::Discrete, false), [1, 4, 4, 3, 2]);
        assert_eq!(firsts(&nvidia_with_rebar(), DeviceKind::Discrete, true), [1, 1, 2, 3, 2]);
        assert_eq!(firsts(&radv_without_rebar(), DeviceKind::Discrete, true), [0, 0, 2, 5, 2]);
        assert_eq!(firsts(&radv_with_rebar(), DeviceKind::Discrete, false), [0, 2, 2, 3, 1]);
        // What is cached and not coherent would have to be flushed, so it is passed over.
        assert_eq!(firsts(&mock(), DeviceKind::Virtual, false), [5, 2, 2, 2, 0]);
        assert_eq!(firsts(&mock(), DeviceKind::Virtual, true), [5, 5, 0, 2, 0]);
    }

    #[test]
    fn shared_memory() {
        assert_eq!(firsts(&radv_integrated(), DeviceKind::Integrated, false), [1, 1, 1, 3, 1]);
        let full = choose(&radv_integrated(), DeviceKind::Integrated, u32::MAX, false, Use::Resident).unwrap();
        assert_eq!(full.then, Some(2), "what the firmware set apart is asked second");
        // One heap: local and mapped, cached only for what is read back.
        assert_eq!(firsts(&intel_integrated(), DeviceKind::Integrated, false), [0, 1, 1, 2, 1]);
        for staged in [false, true] {
            assert_eq!(firsts(&software(), DeviceKind::Cpu, staged), [0; 5]);
        }
    }

    #[test]
    fn vendor_types_and_those_that_buffers_cannot_have_are_passed_over() {
        let memory = table(&[(1 << 30, true), (1 << 30, false)], &[(0, "ds"), (1, "vcs"), (0, "d"), (1, "vc"), (1, "vck")]);
        assert_eq!(firsts(&memory, DeviceKind::Discrete, true), [2, 2, 3, 4, 3]);
        let masked = choose(&memory, DeviceKind::Discrete, 0b1_0111, true, Use::Staging).unwrap();
        assert_eq!(masked.first, 4);
        assert_eq!(choose(&Memory::default(), DeviceKind::Discrete, u32::MAX, true, Use::Device), None);
    }

    #[test]
    fn a_full_window_leaves_host_writes_in_system_memory() {
        let types = choose(&nvidia_with_rebar(), DeviceKind::Discrete, u32::MAX, false, Use::HostWrites).unwrap();
        assert_eq!((types.first, types.then), (4, Some(2)));
        // Weights never slip into system memory.
        assert_eq!(choose(&nvidia_with_rebar(), DeviceKind::Discrete, u32::MAX, false, Use::Resident).unwrap().then, None);
    }
}
