//! Which device runs the model.

use std::fmt;
use std::str::FromStr;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// The CPU.
    Cpu,
}

/// What is known when the device is chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Whether this build can drive Vulkan devices.
    pub vulkan_built: bool,
}

/// Chooses the device.
pub fn choose(request: &DeviceRequest, facts: DeviceFacts) -> Result<Choice<Device>> {
    match request {
        DeviceRequest::Cpu => Ok(Choice::new(Device::Cpu, "asked for by --device cpu")),
        DeviceRequest::Auto if facts.vulkan_built => Ok(Choice::new(Device::Cpu, "no Vulkan device has been looked for")),
        DeviceRequest::Auto => Ok(Choice::new(Device::Cpu, "this build runs models on the CPU only")),
        asked => {
            let lack = if facts.vulkan_built { "no Vulkan device has been looked for" } else { "this build has no Vulkan executor yet" };
            Err(Error::unmet(format!("--device {asked}: {lack}; use --device cpu or leave the option out")))
        }
    }
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coli_base::Kind;

    fn chosen(text: &str) -> Result<Choice<Device>> {
        choose(&text.parse()?, DeviceFacts::default())
    }

    #[test]
    fn the_cpu_is_chosen_with_a_reason() {
        for text in ["auto", "cpu"] {
            let choice = chosen(text).unwrap();
            assert_eq!(choice.value, Device::Cpu);
            assert!(choice.reason.contains("CPU") || choice.reason.contains("cpu"));
        }
    }

    #[test]
    fn a_request_for_another_device_is_unmet_by_name() {
        for text in ["vulkan", "0", "3", "NVIDIA H200"] {
            let error = chosen(text).unwrap_err();
            assert_eq!(error.kind, Kind::Unmet);
            assert!(error.text.starts_with(&format!("--device {text}: ")) && error.text.contains("--device cpu"), "{}", error.text);
        }
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
