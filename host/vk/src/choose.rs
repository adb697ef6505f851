//! Which device: pure functions from facts to a choice and its reason, or to one line that says why none.

use std::cmp::Reverse;

use crate::facts::{DeviceFacts, DeviceKind, Version};
use crate::fault::{Fault, Result};

/// Which device is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The best there is. A CPU as a Vulkan device is slower than the CPU itself, so it counts only when a test says so.
    Best {
        /// Whether a CPU device counts.
        cpu: bool,
    },
    /// The one with this number in the loader's list.
    Index(u32),
    /// The first whose name has this in it, in letters of either case.
    Name(String),
}

/// The version that is needed.
const LEAST: Version = Version { major: 1, minor: 2 };

/// Why a device cannot be used; `None` where it can.
pub fn refusal(facts: &DeviceFacts) -> Option<String> {
    let lacks = [
        (facts.features.buffer_address, "bufferDeviceAddress"),
        (facts.features.timeline, "timelineSemaphore"),
        (facts.subgroups.arithmetic, "subgroup arithmetic in compute shaders"),
        (facts.families.iter().any(|family| family.compute && family.count > 0), "a compute queue"),
    ];
    if facts.api < LEAST {
        return Some(format!("it has Vulkan {}, {LEAST} is needed", facts.api));
    }
    let lacking: Vec<&str> = lacks.iter().filter(|(has, _)| !has).map(|(_, name)| *name).collect();
    (!lacking.is_empty()).then(|| format!("it lacks {}", lacking.join(" and ")))
}

/// A chosen device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// Its place in the list that was given.
    pub at: usize,
    /// Why it.
    pub reason: String,
}

/// Chooses a device. A request by number or name is answered with that device or refused, never with another.
pub fn choose(devices: &[DeviceFacts], wanted: &Wanted) -> Result<Chosen> {
    match wanted {
        Wanted::Index(index) => {
            let found = devices.iter().position(|device| device.index == *index);
            named(devices, found, &format!("there is no device {index}"), "asked for by its number")
        }
        Wanted::Name(name) => {
            let part = name.to_lowercase();
            let has = |device: &&DeviceFacts| device.name.to_lowercase().contains(&part);
            // Of one device under two drivers, the one that is kept.
            let kept = distinct(devices).into_iter().find(|&at| has(&&devices[at]));
            let found = kept.or_else(|| devices.iter().position(|device| has(&device)));
            named(devices, found, &format!("no device has \"{name}\" in its name"), "asked for by its name")
        }
        Wanted::Best { cpu } => best(devices, *cpu),
    }
}

fn named(devices: &[DeviceFacts], found: Option<usize>, none: &str, reason: &str) -> Result<Chosen> {
    let Some(at) = found else {
        let there: Vec<String> = devices.iter().map(|device| format!("{} {}", device.index, device.name)).collect();
        let there = if there.is_empty() { "none".into() } else { there.join(", ") };
        return Err(Fault::NoDevice { why: format!("{none}; there are: {there}") });
    };
    match refusal(&devices[at]) {
        Some(why) => Err(Fault::NoDevice { why: format!("{}: {why}", devices[at].name) }),
        None => Ok(Chosen { at, reason: reason.into() }),
    }
}

fn best(devices: &[DeviceFacts], cpu: bool) -> Result<Chosen> {
    let usable = |at: &usize| refusal(&devices[*at]).is_none() && (cpu || devices[*at].kind != DeviceKind::Cpu);
    let kept = distinct(devices);
    let ranked = kept.iter().copied().filter(usable).min_by_key(|&at| rank(&devices[at]));
    if let Some(at) = ranked {
        let others = kept.len() - 1;
        let reason = match others {
            0 => format!("the only device, {}", devices[at].kind),
            _ => format!("the best of {}, {}", kept.len(), devices[at].kind),
        };
        return Ok(Chosen { at, reason });
    }
    let why: Vec<String> = devices
        .iter()
        .map(|device| {
            let reason = refusal(device).unwrap_or_else(|| "it is the CPU, used only when it is asked for".into());
            format!("{}: {reason}", device.name)
        })
        .collect();
    Err(Fault::NoDevice { why: if why.is_empty() { "the drivers list none".into() } else { why.join("; ") } })
}

/// The smaller the better: by kind, then by memory.
fn rank(device: &DeviceFacts) -> (DeviceKind, Reverse<u64>, u32) {
    // What says nothing of itself comes behind a virtual GPU and before a CPU.
    let kind = if device.kind == DeviceKind::Other { DeviceKind::Virtual } else { device.kind };
    (kind, Reverse(device.memory.largest_local()), device.index)
}

/// Each device once, as places in the list: of one that two drivers show, the usable one, then the one whose driver is known to do better
/// at compute, then the first.
pub fn distinct(devices: &[DeviceFacts]) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    for (at, device) in devices.iter().enumerate() {
        match kept.iter().position(|&other| is_same(&devices[other], device)) {
            None => kept.push(at),
            Some(place) => {
                let worth = |at: usize| (refusal(&devices[at]).is_some(), driver_rank(devices[at].driver.id));
                if worth(at) < worth(kept[place]) {
                    kept[place] = at;
                }
            }
        }
    }
    kept
}

/// Whether two entries are one device under two drivers. Under one driver they are two, even with one UUID: MoltenVK has shown that.
fn is_same(one: &DeviceFacts, other: &DeviceFacts) -> bool {
    let drivers_differ = one.driver.id != other.driver.id || one.driver.uuid != other.driver.uuid;
    let uuid = one.uuid == other.uuid && one.uuid != [0; 16];
    let pci = one.pci.is_some() && one.pci == other.pci;
    drivers_differ && one.vendor == other.vendor && (uuid || pci)
}

/// The vendor's or Mesa's usual driver before others: RADV (3) before AMD's two (1, 2), NVIDIA's own (4) before NVK (23).
fn driver_rank(id: i32) -> u8 {
    match id {
        3 | 4 => 0,
        1 | 2 | 23 => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Driver, Family, Features, Pci, Subgroups};
    use crate::memory::{Heap, Memory};

    fn device(index: u32, name: &str, kind: DeviceKind, gib: u64) -> DeviceFacts {
        DeviceFacts {
            index,
            name: name.into(),
            kind,
            api: Version { major: 1, minor: 3 },
            vendor: 0x1002,
            uuid: [u8::try_from(index).unwrap() + 1; 16],
            driver: Driver { id: 3, ..Driver::default() },
            memory: Memory { types: Vec::new(), heaps: vec![Heap { bytes: gib << 30, device_local: true }] },
            subgroups: Subgroups { size: 32, range: (32, 32), arithmetic: true, ..Subgroups::default() },
            features: Features { buffer_address: true, timeline: true, ..Features::default() },
            families: vec![Family { count: 1, compute: true, transfer: true, ..Family::default() }],
            ..DeviceFacts::default()
        }
    }

    const BEST: Wanted = Wanted::Best { cpu: false };

    #[test]
    fn discrete_then_integrated_then_the_larger_and_no_cpu_unless_asked() {
        let all = [
            device(0, "llvmpipe", DeviceKind::Cpu, 64),
            device(1, "780M", DeviceKind::Integrated, 32),
            device(2, "small", DeviceKind::Discrete, 8),
            device(3, "large", DeviceKind::Discrete, 24),
        ];
        let name = |devices: &[DeviceFacts], wanted: &Wanted| choose(devices, wanted).map(|chosen| devices[chosen.at].name.clone());
        assert_eq!(name(&all, &BEST).unwrap(), "large");
        assert_eq!(name(&all[..2], &BEST).unwrap(), "780M");
        assert!(matches!(name(&all[..1], &BEST), Err(Fault::NoDevice { why }) if why.contains("llvmpipe") && why.contains("CPU")));
        assert_eq!(name(&all[..1], &Wanted::Best { cpu: true }).unwrap(), "llvmpipe");
        assert_eq!(name(&all, &Wanted::Best { cpu: true }).unwrap(), "large");
        assert!(matches!(name(&[], &BEST), Err(Fault::NoDevice { .. })));
    }

    #[test]
    fn a_request_is_answered_with_that_device_or_refused() {
        let mut all = [device(0, "llvmpipe (LLVM 15)", DeviceKind::Cpu, 2), device(1, "Radeon 780M", DeviceKind::Integrated, 2)];
        assert_eq!(choose(&all, &Wanted::Name("LLVMpipe".into())).unwrap().at, 0);
        assert_eq!(choose(&all, &Wanted::Index(1)).unwrap().at, 1);
        assert!(matches!(choose(&all, &Wanted::Index(7)), Err(Fault::NoDevice { why }) if why.contains("1 Radeon 780M")));
        assert!(matches!(choose(&all, &Wanted::Name("arc".into())), Err(Fault::NoDevice { why }) if why.contains("\"arc\"")));
        all[1].features.timeline = false;
        assert!(matches!(choose(&all, &Wanted::Index(1)), Err(Fault::NoDevice { why }) if why.contains("timelineSemaphore")));
    }

    #[test]
    fn what_is_required_is_named() {
        let good = device(0, "a", DeviceKind::Discrete, 1);
        assert_eq!(refusal(&good), None);
        let mut old = good.clone();
        old.api = Version { major: 1, minor: 1 };
        assert_eq!(refusal(&old).unwrap(), "it has Vulkan 1.1, 1.2 is needed");
        let mut bare = good.clone();
        bare.features.buffer_address = false;
        bare.subgroups.arithmetic = false;
        assert_eq!(refusal(&bare).unwrap(), "it lacks bufferDeviceAddress and subgroup arithmetic in compute shaders");
        let mut copies = good;
        copies.families[0].compute = false;
        assert!(refusal(&copies).unwrap().contains("compute queue"));
    }

    #[test]
    fn one_device_under_two_drivers_counts_once() {
        let proprietary = DeviceFacts { driver: Driver { id: 1, ..Driver::default() }, ..device(0, "a", DeviceKind::Discrete, 8) };
        let radv = DeviceFacts { uuid: proprietary.uuid, ..device(1, "a", DeviceKind::Discrete, 8) };
        assert_eq!(distinct(&[proprietary.clone(), radv.clone()]), [1], "RADV is kept");
        let mut broken = radv.clone();
        broken.features.timeline = false;
        assert_eq!(distinct(&[proprietary.clone(), broken]), [0], "a usable one comes first");
        // By their place on the bus where the UUIDs differ.
        let place = Some(Pci { place: [0, 3, 0, 0] });
        let (by_bus, again) = (DeviceFacts { pci: place, ..proprietary }, DeviceFacts { pci: place, uuid: [9; 16], ..radv.clone() });
        assert_eq!(distinct(&[by_bus, again]).len(), 1);
        // Two cards of one driver are two, even with one UUID.
        assert_eq!(distinct(&[radv.clone(), radv]).len(), 2);
    }
}
