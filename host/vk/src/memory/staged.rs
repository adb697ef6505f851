//! Whether resident data is written through a mapping of device memory or copied there from a staging buffer. Pure; the probe's own
//! allocations are made by whoever holds the device.
//!
//! A card without Resizable BAR shows the host a window of about 256 MiB: weights past it are refused, or land in system memory where every
//! access crosses the bus. And a card whose window is as large as its memory may still be given less of it, so a card is asked once.

use super::types::Memory;
use super::{GIB, MIB};
use crate::facts::DeviceKind;

/// What was decided, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Copied from staging memory.
    pub staged: bool,
    /// For the log.
    pub reason: String,
}

/// Decides from what the device says of itself. `asked` settles it; `cap` treats the window as at most that large, so that a device that
/// has none of the trouble takes the way of one that has it.
pub fn decide(memory: &Memory, asked: Option<bool>, cap: Option<u64>) -> Placement {
    if let Some(staged) = asked {
        return Placement { staged, reason: if staged { "staged uploads, as asked".into() } else { "mapped, as asked".into() } };
    }
    let largest = memory.largest_local();
    let Some((window, _)) = memory.window() else {
        return Placement { staged: true, reason: "no device-local memory is host-visible".into() };
    };
    let window = window.min(cap.unwrap_or(u64::MAX));
    let seen = format!("{} of {} MiB of device-local memory is host-visible", window / MIB, largest / MIB);
    Placement { staged: window < largest / 4, reason: seen }
}

/// How much of the host-visible device-local type to ask for in the probe, in whole GiB; `None` where the answer is known: only a card that
/// is mapped by its own word is asked. Nine tenths of the heap, less where the budget is less: what others hold is no small window.
pub fn probe_bytes(memory: &Memory, kind: DeviceKind, placement: &Placement, asked: Option<bool>, free: Option<u64>) -> Option<u64> {
    if kind != DeviceKind::Discrete || placement.staged || asked.is_some() {
        return None;
    }
    let (window, _) = memory.window()?;
    let bytes = (window / 10 * 9).min(free.unwrap_or(u64::MAX)) / GIB * GIB;
    (bytes > 0).then_some(bytes)
}

/// Decides after the probe.
pub fn after_probe(asked: u64, given: u64) -> Placement {
    let staged = given < asked;
    let reason = if staged {
        format!("the driver gave {} of the {} GiB asked of host-visible device-local memory", given / GIB, asked / GIB)
    } else {
        format!("host-visible device-local memory gave the {} GiB asked", asked / GIB)
    };
    Placement { staged, reason }
}

#[cfg(test)]
mod tests {
    use super::super::samples::*;
    use super::*;

    #[test]
    fn a_window_under_a_quarter_is_staged() {
        let staged = |memory: Memory| decide(&memory, None, None).staged;
        assert!(staged(nvidia_without_rebar()) && staged(radv_without_rebar()));
        assert!(!staged(nvidia_with_rebar()) && !staged(radv_with_rebar()) && !staged(radv_integrated()));
        assert!(!staged(intel_integrated()) && !staged(software()) && !staged(mock()));
        assert!(staged(table(&[(8 << 30, true), (8 << 30, false)], &[(0, "d"), (1, "vc")])), "no window at all");
        assert!(!staged(table(&[(8 << 30, true), (2 << 30, true)], &[(0, "d"), (1, "dvc")])), "exactly a quarter");
    }

    #[test]
    fn a_request_settles_it_and_a_cap_emulates_a_small_window() {
        assert!(decide(&software(), Some(true), None).staged && !decide(&nvidia_without_rebar(), Some(false), None).staged);
        let capped = decide(&software(), None, Some(246 * MIB));
        assert!(capped.staged && capped.reason.contains("246 of 2048 MiB"), "{}", capped.reason);
    }

    #[test]
    fn only_a_mapped_card_is_asked_and_for_no_more_than_is_free() {
        let ask = |memory: &Memory, kind, asked, free| probe_bytes(memory, kind, &decide(memory, asked, None), asked, free);
        let card = nvidia_with_rebar();
        assert_eq!(ask(&card, DeviceKind::Discrete, None, None), Some(126 * GIB));
        assert_eq!(ask(&card, DeviceKind::Discrete, None, Some(40 * GIB + 5)), Some(40 * GIB));
        assert_eq!(ask(&card, DeviceKind::Discrete, None, Some(GIB - 1)), None);
        assert_eq!(ask(&card, DeviceKind::Discrete, Some(false), None), None);
        assert_eq!(ask(&nvidia_without_rebar(), DeviceKind::Discrete, None, None), None);
        assert_eq!(ask(&software(), DeviceKind::Cpu, None, None), None);
        assert!(after_probe(72 * GIB, 39 * GIB).staged && !after_probe(72 * GIB, 72 * GIB).staged);
    }
}
