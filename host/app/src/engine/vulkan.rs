//! Looks for a Vulkan device, opens it, and says what of a program it runs.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use coli_base::{Error, Kind, Result};
use coli_chain::vulkan::{DeviceWeights, VulkanDevice, refusals};
use coli_chain::{Program, StageDevice, cuts_for_device};
use coli_kernels::Kernels;
use coli_place::device::{self, DeviceRequest, Vulkan};
use coli_plugins::{Manifest, PluginModel};
use coli_shaders::contract::WeightStore;
use coli_vk::choose::{Wanted, choose};
use coli_vk::facts::DeviceFacts;
use coli_vk::{Device, Instance, Options, loader};

use super::own_ops::{self, Ops};

/// A plugin's kernel that has not ended after this long never will.
const TRIAL_PATIENCE: Duration = Duration::from_secs(20);

/// Where the loader and the kernels may be, and what a device may take.
#[derive(Debug, Clone, Default)]
pub struct VulkanPlaces {
    /// The loader that a person names.
    pub loader: Option<PathBuf>,
    /// The set of kernels that a person names.
    pub kernels: Option<PathBuf>,
    /// What counts as the folder of the executable.
    pub home: Option<PathBuf>,
    /// The folder of pipeline caches.
    pub cache: Option<PathBuf>,
    /// Bytes of device memory at most.
    pub limit: Option<u64>,
    /// Whether weights are staged, where a test says so.
    pub staged: Option<bool>,
    /// A device that is opened once for several models, by a test: pipelines are then made once.
    pub shared: Option<Arc<OnceLock<Arc<VulkanDevice>>>>,
}

/// A device that was found, to be opened once it is known that the model can be run.
pub(super) struct Found {
    instance: Instance,
    facts: DeviceFacts,
    kernels: Arc<Kernels>,
    options: Options,
    shared: Option<Arc<OnceLock<Arc<VulkanDevice>>>>,
}

/// Looks for a device that meets a request. The loader is opened here. What a person named and is wrong is an error, not a device less.
pub(super) fn look(request: &DeviceRequest, places: &VulkanPlaces) -> Result<(Vulkan, Option<Found>)> {
    match find(request, places) {
        Ok((found, reason)) => {
            let device = device::VulkanDevice { index: found.facts.index, name: found.facts.name.clone() };
            Ok((Vulkan::Found(device, reason), Some(found)))
        }
        Err(error) if matches!(error.kind, Kind::Refused | Kind::Usage) => Err(error),
        Err(error) => Ok((Vulkan::Missing(error.text), None)),
    }
}

fn find(request: &DeviceRequest, places: &VulkanPlaces) -> Result<(Found, String)> {
    // Kernels come first: without them nobody has to open a loader.
    let kernels = Arc::new(Kernels::open(places.kernels.as_deref(), places.home.as_deref())?);
    let candidates = loader::candidates(
        loader::System::here(),
        &loader::Places { loader: places.loader.clone(), program: places.home.clone(), system: None },
    );
    let instance = Instance::open(&candidates)?;
    let devices = instance.devices()?;
    let wanted = match request {
        DeviceRequest::Auto | DeviceRequest::Cpu => Wanted::Best { cpu: false },
        DeviceRequest::Vulkan => Wanted::Best { cpu: true },
        DeviceRequest::Index(index) => Wanted::Index(*index),
        DeviceRequest::Name(name) => Wanted::Name(name.clone()),
    };
    let chosen = choose(&devices, &wanted)?;
    let facts = devices.into_iter().nth(chosen.at).ok_or_else(|| Error::run("the chosen device is gone"))?;
    let options = Options { limit: places.limit, cache: places.cache.clone(), staged: places.staged, ..Options::default() };
    let shared = places.shared.clone();
    Ok((Found { instance, facts, kernels, options, shared }, chosen.reason))
}

/// A device with a program's weights for it, and the stages that it runs.
pub(super) struct Placed {
    pub device: StageDevice,
    pub cuts: Vec<usize>,
    /// How much of the program it runs, and why; what it does not run.
    pub notes: Vec<String>,
}

impl Found {
    /// Tries the device forms of a plugin's own ops, on a device for this alone; what a person should know of it.
    pub fn try_own_ops(&mut self, model: &PluginModel, manifest: &Manifest, ops: &mut Ops) -> Result<Vec<String>> {
        let options = Options { robust: true, patience: TRIAL_PATIENCE, ..self.options.clone() };
        let notes = own_ops::try_devices(model, manifest, ops, &|| {
            let device = Device::open(&self.instance, &self.facts, &options)?;
            Ok(Arc::new(VulkanDevice::new(device, self.kernels.clone())?))
        })?;
        self.options.robust = manifest.own_ops.iter().any(|op| model.own_devices().allowed(op));
        Ok(notes)
    }

    fn open(&self) -> Result<Arc<VulkanDevice>> {
        if let Some(known) = self.shared.as_ref().and_then(|shared| shared.get()) {
            return Ok(known.clone());
        }
        let opened = Device::open(&self.instance, &self.facts, &self.options)?;
        let device = Arc::new(VulkanDevice::new(opened, self.kernels.clone())?);
        Ok(self.shared.as_ref().map_or(&device, |shared| shared.get_or_init(|| device.clone())).clone())
    }

    /// Opens the device and decides which segments it runs; `fixed` bytes are taken there whatever it runs.
    pub fn place(&self, program: &Program, store: &Arc<dyn WeightStore>, fast: bool, fixed: u64, wanted_cuts: &[usize]) -> Result<Placed> {
        let device = self.open()?;
        let opened = device.device();
        let weights = Arc::new(DeviceWeights::new(opened.clone(), store.clone(), program.description()));
        let refused = refusals(program, &device, &weights, fast);
        let bytes = program.segment_bytes(&**store);
        let choice = device::segments_that_fit(&bytes, fixed, opened.free_bytes());
        if choice.value == 0 {
            return Err(Error::unmet(format!("{}: {}; use a smaller --ctx or --device cpu", self.facts.name, choice.reason)));
        }
        let (mut off, mut notes) = (vec![], vec![]);
        for (number, (why, name)) in refused.iter().zip(program.segments()).enumerate() {
            let beyond = number >= choice.value;
            off.push(why.is_some() || beyond);
            if let Some(why) = why.as_ref().filter(|_| !beyond) {
                notes.push(format!("{name} runs on the CPU: {why}"));
            }
        }
        let (cuts, stages) = cuts_for_device(&off, wanted_cuts);
        notes.insert(0, format!("{}: {}; {}", self.facts.name, choice.reason, opened.placement().reason));
        Ok(Placed { device: StageDevice { device, weights, stages }, cuts, notes })
    }
}
