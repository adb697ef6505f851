//! What can go wrong with a device, by what a caller has to do about it.

use std::fmt;

use ash::vk;
use coli_base::{Error, Kind};

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Fault>;

/// A failure, and so what to do: without loader, driver or device the CPU runs the model, without memory less is placed, and a lost device
/// is given up with all that lies on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Vulkan's loader cannot be opened.
    NoLoader {
        /// What was tried, in order.
        tried: Vec<String>,
        /// What the system said of the last.
        why: String,
    },
    /// There is a loader and no driver that it can use.
    NoDriver {
        /// What the loader said.
        why: String,
    },
    /// No device is usable, or not the one that was asked for.
    NoDevice {
        /// Each device with its reason.
        why: String,
    },
    /// Memory was refused, by the driver or by a limit of ours. Everything else stays usable.
    Memory {
        /// What was asked for and who refused.
        what: String,
    },
    /// The device is lost: nothing on it can be trusted or reached any more.
    Lost {
        /// What was going on.
        during: &'static str,
        /// How it was noticed.
        why: String,
    },
    /// A call failed in a way that concerns this call alone.
    Call {
        /// The function.
        call: &'static str,
        /// What it returned.
        result: String,
    },
    /// The request is not one that this device can serve.
    Wrong {
        /// What and why.
        what: String,
    },
}

impl Fault {
    /// The fault of a Vulkan call.
    pub(crate) fn of(call: &'static str, result: vk::Result) -> Self {
        match result {
            vk::Result::ERROR_DEVICE_LOST => Self::Lost { during: call, why: "the driver says so".into() },
            vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => Self::Memory { what: format!("{call}: out of device memory") },
            vk::Result::ERROR_OUT_OF_HOST_MEMORY => Self::Memory { what: format!("{call}: out of host memory") },
            vk::Result::ERROR_TOO_MANY_OBJECTS => Self::Memory { what: format!("{call}: too many allocations") },
            other => Self::Call { call, result: format!("{other:?}") },
        }
    }

    /// A request that cannot be served.
    pub(crate) fn wrong(what: impl Into<String>) -> Self {
        Self::Wrong { what: what.into() }
    }

    /// Whether the device is lost.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }

    /// Whether only memory is missing.
    pub fn is_memory(&self) -> bool {
        matches!(self, Self::Memory { .. })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLoader { tried, why } => write!(f, "no Vulkan loader: tried {} ({why})", tried.join(", ")),
            Self::NoDriver { why } => write!(f, "no Vulkan driver: {why}"),
            Self::NoDevice { why } => write!(f, "no usable Vulkan device: {why}"),
            Self::Memory { what } => write!(f, "no memory: {what}"),
            Self::Lost { during, why } => write!(f, "the device is lost, noticed in {during}: {why}"),
            Self::Call { call, result } => write!(f, "{call} failed: {result}"),
            Self::Wrong { what } => f.write_str(what),
        }
    }
}

impl std::error::Error for Fault {}

impl From<Fault> for Error {
    /// For a request that was explicit: whoever fell back to the CPU has no error to report.
    fn from(fault: Fault) -> Self {
        let kind = match fault {
            Fault::NoLoader { .. } | Fault::NoDriver { .. } | Fault::NoDevice { .. } => Kind::Unmet,
            _ => Kind::Run,
        };
        Self::new(kind, fault.to_string())
    }
}

/// Names a failed call; for `map_err`.
pub(crate) fn failed(call: &'static str) -> impl Fn(vk::Result) -> Fault {
    move |result| Fault::of(call, result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_told_apart_by_what_to_do() {
        assert!(Fault::of("a", vk::Result::ERROR_DEVICE_LOST).is_lost());
        for result in [vk::Result::ERROR_OUT_OF_DEVICE_MEMORY, vk::Result::ERROR_OUT_OF_HOST_MEMORY, vk::Result::ERROR_TOO_MANY_OBJECTS] {
            assert!(Fault::of("a", result).is_memory());
        }
        let other = Fault::of("vkQueueSubmit", vk::Result::ERROR_INITIALIZATION_FAILED);
        assert!(!other.is_lost() && !other.is_memory());
        assert_eq!(other.to_string(), "vkQueueSubmit failed: ERROR_INITIALIZATION_FAILED");
    }

    #[test]
    fn each_fault_is_one_line_and_says_whose_turn_it_is() {
        let none = Fault::NoLoader { tried: vec!["a".into(), "b".into()], why: "not there\nat all".into() };
        let error = Error::from(none);
        assert_eq!(error.kind, Kind::Unmet);
        assert!(error.text.starts_with("no Vulkan loader: tried a, b") && !error.text.contains('\n'), "{}", error.text);
        assert_eq!(Error::from(Fault::Memory { what: "x".into() }).kind, Kind::Run);
    }
}
