//! Opens Vulkan's loader and lists its devices. The loader is opened here and nowhere else, and only when somebody asks for devices.
#![allow(unsafe_code)]

use std::path::PathBuf;
use std::sync::Arc;

use ash::vk;

use crate::facts::DeviceFacts;
use crate::fault::{Fault, Result, failed};
use crate::query;

/// An opened loader.
#[derive(Clone)]
pub struct Instance {
    pub(crate) hold: Arc<InstanceHold>,
}

/// The instance itself, which devices keep alive.
pub(crate) struct InstanceHold {
    pub(crate) entry: ash::Entry,
    pub(crate) raw: ash::Instance,
}

impl Instance {
    /// Opens the first of these libraries ([`crate::loader::candidates`]) that opens, and the drivers behind it. A loader that opens and
    /// has no driver is not passed over for the next: what a person installed is what is reported.
    pub fn open(candidates: &[PathBuf]) -> Result<Self> {
        let mut why = "there is no place to look".to_string();
        for path in candidates {
            // SAFETY: what runs on opening is the system's Vulkan loader, or the library that the person at this machine named as such.
            match unsafe { ash::Entry::load_from(path) } {
                Ok(entry) => return Self::start(entry),
                Err(error) => why = error.to_string(),
            }
        }
        Err(Fault::NoLoader { tried: candidates.iter().map(|path| path.display().to_string()).collect(), why })
    }

    fn start(entry: ash::Entry) -> Result<Self> {
        // A loader is never unloaded: drivers leave threads and exit handlers behind, whose code must stay.
        std::mem::forget(entry.clone());
        // SAFETY: the entry is loaded, and the call has no other condition.
        let version = unsafe { entry.try_enumerate_instance_version() }.map_err(failed("vkEnumerateInstanceVersion"))?;
        if version.unwrap_or(vk::API_VERSION_1_0) < vk::API_VERSION_1_2 {
            return Err(Fault::NoDriver { why: "the loader is older than Vulkan 1.2".into() });
        }
        // SAFETY: no layer is named, so there is no name that has to live.
        let listed = unsafe { entry.enumerate_instance_extension_properties(None) };
        let listed = listed.map_err(failed("vkEnumerateInstanceExtensionProperties"))?;
        // Drivers that cover only most of Vulkan (MoltenVK) are listed only on request.
        let portable = listed.iter().any(|one| one.extension_name_as_c_str() == Ok(ash::khr::portability_enumeration::NAME));
        let names = if portable { vec![ash::khr::portability_enumeration::NAME.as_ptr()] } else { Vec::new() };
        let flags = if portable { vk::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR } else { vk::InstanceCreateFlags::empty() };
        let application = vk::ApplicationInfo::default().application_name(c"coli").engine_name(c"coli").api_version(vk::API_VERSION_1_3);
        let info = vk::InstanceCreateInfo::default().application_info(&application).enabled_extension_names(&names).flags(flags);
        // SAFETY: all that `info` points at lives until the end of this function, and the extensions are among those listed.
        let raw = unsafe { entry.create_instance(&info, None) }.map_err(|result| match result {
            vk::Result::ERROR_INCOMPATIBLE_DRIVER => Fault::NoDriver { why: "the loader found none that works".into() },
            other => Fault::NoDriver { why: format!("vkCreateInstance: {other:?}") },
        })?;
        Ok(Self { hold: Arc::new(InstanceHold { entry, raw }) })
    }

    /// The devices, in the loader's order.
    pub fn devices(&self) -> Result<Vec<DeviceFacts>> {
        Ok(self.physical()?.into_iter().enumerate().map(|(index, device)| query::facts(&self.hold, index, device)).collect())
    }

    pub(crate) fn physical(&self) -> Result<Vec<vk::PhysicalDevice>> {
        // SAFETY: the instance lives as long as its hold.
        let devices = unsafe { self.hold.raw.enumerate_physical_devices() };
        devices.map_err(|result| match result {
            vk::Result::ERROR_INITIALIZATION_FAILED => Fault::NoDriver { why: "no driver starts".into() },
            other => Fault::of("vkEnumeratePhysicalDevices", other),
        })
    }
}

impl Drop for InstanceHold {
    fn drop(&mut self) {
        // SAFETY: every device keeps this hold, so none is left.
        unsafe { self.raw.destroy_instance(None) };
    }
}
