//! Which device runs the model.

use std::fmt;
use std::str::FromStr;

use coli_base::units::Bytes;
use coli_base::{Error, Result};

use crate::Choice;

/// What `--device` asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DeviceRequest {
    /// The best there is.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The best Vulkan device.
    Vulkan,
    /// A Vulkan device by its number.
    Index(u32),
    /// A Vulkan device by its name or a part of it.
    Name(String),
}

/// A device that can run the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Device {
    /// The CPU.
    Cpu,
    /// A Vulkan device.
    Vulkan(VulkanDevice),
}

/// A Vulkan device as the loader lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VulkanDevice {
    /// Its number in the loader's list.
    pub index: u32,
    /// Its name.
    pub name: String,
}

/// What was found of Vulkan when it was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Vulkan {
    /// A device that meets the request, and why it.
    Found(VulkanDevice, String),
    /// None, and why.
    Missing(String),
}

/// Chooses the device; `look` looks for a Vulkan device, and is asked only where one may be used.
pub fn choose(request: &DeviceRequest, look: impl FnOnce() -> Result<Vulkan>) -> Result<Choice<Device>> {
    if *request == DeviceRequest::Cpu {
        return Ok(Choice::new(Device::Cpu, "asked for by --device cpu"));
    }
    match (request, look()?) {
        (DeviceRequest::Auto, Vulkan::Found(device, reason)) => Ok(Choice::new(Device::Vulkan(device), reason)),
        (asked, Vulkan::Found(device, reason)) => {
            Ok(Choice::new(Device::Vulkan(device), format!("asked for by --device {asked}; {reason}")))
        }
        (DeviceRequest::Auto, Vulkan::Missing(why)) => Ok(Choice::new(Device::Cpu, format!("no Vulkan: {why}"))),
        (asked, Vulkan::Missing(why)) => Err(Error::unmet(format!("--device {asked}: {why}; use --device cpu or leave the option out"))),
    }
}

/// How many of a program's segments a device runs, from the first on: all, or those whose bytes are within what is free beside what every
/// run needs there (`fixed`). Where the request did not name a device and not one layer fits, there are none.
pub fn segments_that_fit(segment_bytes: &[u64], fixed: u64, free: u64) -> Choice<usize> {
    let mut left = free.saturating_sub(fixed);
    let fitting = segment_bytes.iter().take_while(|bytes| {
        let fits = **bytes <= left;
        left = left.saturating_sub(**bytes);
        fits
    });
    let (fit, all) = (fitting.count(), segment_bytes.len());
    let wanted = segment_bytes.iter().fold(fixed, |sum, bytes| sum.saturating_add(*bytes));
    let (wanted, free) = (Bytes(wanted), Bytes(free));
    if fit == all {
        return Choice::new(all, format!("all of it fits: {wanted} of {free} free"));
    }
    Choice::new(fit, format!("{fit} of {all} segments fit: {wanted} are wanted, {free} free"))
}

impl FromStr for DeviceRequest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "vulkan" => Ok(Self::Vulkan),
            _ if text.trim().is_empty() || text.chars().any(char::is_control) => Err(wrong(text, "is no device")),
            _ if text.chars().all(|c| c.is_ascii_digit()) => {
                text.parse().map(Self::Index).map_err(|_| wrong(text, "is too large for a device's number"))
            }
            name => Ok(Self::Name(name.into())),
        }
    }
}

fn wrong(text: &str, why: &str) -> Error {
    Error::usage(format!("--device: `{}` {why}; expected auto, cpu, vulkan, a device's number or its name", text.escape_debug()))
}

impl fmt::Display for DeviceRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Vulkan => f.write_str("vulkan"),
            Self::Index(index) => write!(f, "{index}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Vulkan(device) => f.write_str(&device.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coli_base::Kind;

    fn missing() -> Result<Vulkan> {
        Ok(Vulkan::Missing("no driver".into()))
    }

    fn found() -> Result<Vulkan> {
        Ok(Vulkan::Found(VulkanDevice { index: 1, name: "a card".into() }, "the only device".into()))
    }

    #[test]
    fn the_cpu_is_chosen_with_a_reason() {
        let looked = || -> Result<Vulkan> { panic!("nobody wants Vulkan") };
        assert_eq!(choose(&DeviceRequest::Cpu, looked).unwrap(), Choice::new(Device::Cpu, "asked for by --device cpu"));
        assert_eq!(choose(&DeviceRequest::Auto, missing).unwrap(), Choice::new(Device::Cpu, "no Vulkan: no driver"));
    }

    #[test]
    fn a_device_that_is_found_is_chosen() {
        let choice = choose(&DeviceRequest::Auto, found).unwrap();
        assert_eq!((choice.value.to_string().as_str(), choice.reason.as_str()), ("a card", "the only device"));
        let choice = choose(&DeviceRequest::Vulkan, found).unwrap();
        assert_eq!(choice.reason, "asked for by --device vulkan; the only device");
    }

    #[test]
    fn a_request_for_another_device_is_unmet_by_name() {
        for text in ["vulkan", "0", "3", "NVIDIA H200"] {
            let error = choose(&text.parse().unwrap(), missing).unwrap_err();
            assert_eq!(error.kind, Kind::Unmet);
            assert_eq!(error.text, format!("--device {text}: no driver; use --device cpu or leave the option out"));
        }
    }

    #[test]
    fn as_many_segments_as_fit() {
        let fit = |free| segments_that_fit(&[10, 20, 20, 50], 5, free).value;
        assert_eq!([fit(105), fit(104), fit(55), fit(54), fit(15), fit(14), fit(0)], [4, 3, 3, 2, 1, 0, 0]);
        assert_eq!(segments_that_fit(&[u64::MAX, u64::MAX], u64::MAX, 7).value, 0);
    }

    #[test]
    fn requests_are_read_and_written_alike() {
        let cases = [
            ("auto", DeviceRequest::Auto),
            ("cpu", DeviceRequest::Cpu),
            ("vulkan", DeviceRequest::Vulkan),
            ("12", DeviceRequest::Index(12)),
            ("-1", DeviceRequest::Name("-1".into())),
            ("llvmpipe 7", DeviceRequest::Name("llvmpipe 7".into())),
        ];
        for (text, request) in cases {
            assert_eq!(text.parse::<DeviceRequest>().unwrap(), request);
            assert_eq!(request.to_string(), text);
        }
        for text in ["", " ", "a\nb", "99999999999"] {
            assert_eq!(text.parse::<DeviceRequest>().unwrap_err().kind, Kind::Usage, "{text:?}");
        }
    }
}
