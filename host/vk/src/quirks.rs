//! What is known to be wrong with certain devices and drivers: named bits, each with the devices that have it and the reason. A pure
//! function over a table, so that a row can be tested without the device.

use crate::facts::{DeviceFacts, DeviceKind};

/// Something that must be done another way on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quirk {
    /// Cooperative matrices are reported and do not work, or hang.
    NoMatrices,
    /// Copies on a queue of their own go wrong.
    NoTransferQueue,
    /// The host's pages cannot be read in place, whatever is reported.
    NoImport,
    /// A job that the driver killed looks finished: only a word that the job itself writes proves it.
    KilledLooksDone,
    /// The integer dot product is reported and is slower than floats.
    SlowIntegerDot,
    /// The size of the device-local heap is made up and nothing holds it.
    MadeUpHeap,
    /// Results of memory that the device never wrote differ from run to run.
    FillBeforeUse,
}

/// The quirks of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quirks(u32);

impl Quirks {
    /// Whether the device has it.
    pub const fn has(self, quirk: Quirk) -> bool {
        self.0 & (1 << quirk as u32) != 0
    }

    /// With one more.
    #[must_use]
    pub const fn with(self, quirk: Quirk) -> Self {
        Self(self.0 | 1 << quirk as u32)
    }
}

const AMD: u32 = 0x1002;
const INTEL: u32 = 0x8086;
const NVIDIA: u32 = 0x10de;

/// `VkDriverId`s.
mod driver {
    pub(super) const AMD_PROPRIETARY: i32 = 1;
    pub(super) const AMD_OPEN: i32 = 2;
    pub(super) const RADV: i32 = 3;
    pub(super) const INTEL_WINDOWS: i32 = 5;
    pub(super) const MOLTENVK: i32 = 14;
}

/// A row of the table.
struct Known {
    quirk: Quirk,
    reason: &'static str,
    applies: fn(&DeviceFacts) -> bool,
}

const TABLE: &[Known] = &[
    Known {
        quirk: Quirk::KilledLooksDone,
        reason: "AMD: a reset after the job's time limit signals its fence as if it had ended",
        applies: |device| device.vendor == AMD,
    },
    Known {
        quirk: Quirk::NoMatrices,
        reason: "AMD's proprietary driver reports cooperative matrices that it cannot run",
        applies: |device| device.driver.id == driver::AMD_PROPRIETARY,
    },
    Known {
        quirk: Quirk::NoMatrices,
        reason: "Intel on Windows: drivers before 32.0.101.8860 hang in cooperative matrices",
        // Two fields, as in the last two numbers of the version's name.
        applies: |device| {
            device.driver.id == driver::INTEL_WINDOWS && (device.driver.version >> 14, device.driver.version & 0x3fff) < (101, 8860)
        },
    },
    Known {
        quirk: Quirk::NoTransferQueue,
        reason: "AMDVLK: copies on the transfer queue overtake writes to the same memory",
        applies: |device| device.driver.id == driver::AMD_OPEN,
    },
    Known {
        quirk: Quirk::NoImport,
        reason: "MoltenVK does not read the host's pages in place",
        applies: |device| device.driver.id == driver::MOLTENVK,
    },
    Known {
        quirk: Quirk::SlowIntegerDot,
        reason: "Intel on Windows: the integer dot product is slower than floats",
        applies: |device| device.driver.id == driver::INTEL_WINDOWS && device.vendor == INTEL,
    },
    Known {
        quirk: Quirk::MadeUpHeap,
        reason: "RADV: an integrated GPU's device-local heap is two thirds of all and not enforced",
        applies: |device| device.driver.id == driver::RADV && device.kind == DeviceKind::Integrated,
    },
    Known {
        quirk: Quirk::FillBeforeUse,
        reason: "Polaris: memory that the device never wrote gave other results in every run",
        applies: |device| device.vendor == AMD && device.name.contains("POLARIS"),
    },
    Known {
        quirk: Quirk::NoMatrices,
        reason: "NVIDIA Turing: attention on cooperative matrices is compiled wrongly",
        applies: |device| {
            device.vendor == NVIDIA && ["RTX 20", "GTX 16", "Quadro RTX", "Tesla T4"].iter().any(|part| device.name.contains(part))
        },
    },
];

/// A device's quirks.
pub fn quirks(device: &DeviceFacts) -> Quirks {
    known(device).fold(Quirks::default(), |quirks, known| quirks.with(known.quirk))
}

/// A device's quirks with their reasons, for a log.
pub fn reasons(device: &DeviceFacts) -> Vec<(Quirk, &'static str)> {
    known(device).map(|known| (known.quirk, known.reason)).collect()
}

fn known(device: &DeviceFacts) -> impl Iterator<Item = &'static Known> {
    TABLE.iter().filter(move |known| (known.applies)(device))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Driver;

    fn device(vendor: u32, driver: i32, kind: DeviceKind, name: &str) -> DeviceFacts {
        DeviceFacts { vendor, kind, name: name.into(), driver: Driver { id: driver, ..Driver::default() }, ..DeviceFacts::default() }
    }

    #[test]
    fn each_row_applies_to_its_devices_only() {
        let of = |device: &DeviceFacts| reasons(device).into_iter().map(|(quirk, _)| quirk).collect::<Vec<_>>();
        let radv = device(AMD, driver::RADV, DeviceKind::Integrated, "AMD Radeon 780M (RADV PHOENIX)");
        assert_eq!(of(&radv), [Quirk::KilledLooksDone, Quirk::MadeUpHeap]);
        assert_eq!(
            of(&device(AMD, driver::RADV, DeviceKind::Discrete, "AMD Radeon RX 580 (RADV POLARIS10)")),
            [Quirk::KilledLooksDone, Quirk::FillBeforeUse]
        );
        assert_eq!(of(&device(AMD, driver::AMD_PROPRIETARY, DeviceKind::Discrete, "RX")), [Quirk::KilledLooksDone, Quirk::NoMatrices]);
        assert_eq!(of(&device(AMD, driver::AMD_OPEN, DeviceKind::Discrete, "RX")), [Quirk::KilledLooksDone, Quirk::NoTransferQueue]);
        assert_eq!(of(&device(NVIDIA, 4, DeviceKind::Discrete, "NVIDIA H200")), []);
        assert_eq!(of(&device(NVIDIA, 4, DeviceKind::Discrete, "NVIDIA GeForce RTX 2080")), [Quirk::NoMatrices]);
        assert_eq!(of(&device(0x106b, driver::MOLTENVK, DeviceKind::Integrated, "Apple M2")), [Quirk::NoImport]);
        assert_eq!(of(&device(0x10005, 13, DeviceKind::Cpu, "llvmpipe")), []);
    }

    #[test]
    fn a_driver_that_was_mended_is_trusted() {
        let mut arc = device(INTEL, driver::INTEL_WINDOWS, DeviceKind::Discrete, "Intel(R) Arc(TM) Pro B70");
        arc.driver.version = 101 << 14 | 8859;
        assert!(quirks(&arc).has(Quirk::NoMatrices));
        arc.driver.version = 101 << 14 | 8860;
        assert!(!quirks(&arc).has(Quirk::NoMatrices) && quirks(&arc).has(Quirk::SlowIntegerDot));
    }
}
