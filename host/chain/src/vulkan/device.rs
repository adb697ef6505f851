//! A device with what all executors on it share: kernels, pipelines, and its shape as plans see it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use coli_base::{Error, Result};
use coli_kernels::Kernels;
use coli_shaders::device::{Bound, DeviceShape, Dispatch};
use coli_vk::facts::{DeviceFacts, Element};
use coli_vk::{Device, Kernel, Pipeline};

use super::own::{OwnKernel, OwnKernels};

/// Bytes of shared memory and invocations of a workgroup that kernels count on.
const SHARED_LEAST: u32 = 16 << 10;
const INVOCATIONS_LEAST: u32 = 128;
/// Bytes of push constants that plans may use; every device has them.
pub(super) const PUSH_MAX: usize = 128;

/// An opened device that runs kernels.
pub struct VulkanDevice {
    device: Device,
    kernels: Arc<Kernels>,
    shape: DeviceShape,
    pipelines: Mutex<HashMap<PipelineKey, Pipeline>>,
    own: OwnKernels,
}

type PipelineKey = (String, Vec<u32>, u32);

impl std::fmt::Debug for VulkanDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VulkanDevice").field("name", &self.device.facts().name).field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl VulkanDevice {
    /// Takes a device with the kernels to run on it.
    pub fn new(device: Device, kernels: Arc<Kernels>) -> Result<Self> {
        let shape = shape(device.facts());
        if shape.shared_bytes < SHARED_LEAST || shape.invocations < INVOCATIONS_LEAST {
            let (shared, invocations) = (shape.shared_bytes, shape.invocations);
            return Err(Error::unmet(format!(
                "{}: workgroups of {invocations} invocations with {shared} bytes of shared memory, {INVOCATIONS_LEAST} with \
                 {SHARED_LEAST} are needed",
                device.facts().name
            )));
        }
        Ok(Self { device, kernels, shape, pipelines: Mutex::default(), own: OwnKernels::default() })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What plans know of it.
    pub fn shape(&self) -> &DeviceShape {
        &self.shape
    }

    /// Pipelines made so far.
    pub fn pipelines(&self) -> usize {
        self.pipelines.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The kernel of a plugin's own that a plan has.
    pub(super) fn own_kernel(&self, bound: &Bound) -> Result<OwnKernel> {
        self.own.get(&self.device, bound)
    }

    /// The pipeline of a dispatch with so many bytes of push constants.
    pub(super) fn pipeline(&self, dispatch: &Dispatch, push: u32) -> Result<Pipeline> {
        let module = dispatch.kernel.module();
        let key = (module, dispatch.constants.clone(), push);
        let mut pipelines = self.pipelines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = pipelines.get(&key) {
            return Ok(known.clone());
        }
        let spirv = self.kernels.get(&key.0).ok_or_else(|| Error::unmet(format!("the set of kernels has no `{}`", key.0)))?;
        let constants: Vec<(u32, u32)> = (0..).zip(dispatch.constants.iter().copied()).collect();
        let made = self.device.pipeline(&Kernel { name: &key.0, spirv, constants: &constants, push, ..Kernel::default() })?;
        pipelines.insert(key, made.clone());
        Ok(made)
    }
}

fn shape(facts: &DeviceFacts) -> DeviceShape {
    let wanted = [Element::F16, Element::F16, Element::F32, Element::F32];
    let features = &facts.features;
    // Kernels on matrix units keep their operands as f16 in shared memory.
    let usable = features.cooperative_matrix && features.float16 && features.storage16;
    let shapes = facts.matrices.iter().filter(|shape| usable && shape.elements == wanted && !shape.saturating);
    // The largest one has the most work for each load.
    let best = shapes.max_by_key(|shape| shape.size.iter().product::<u32>());
    // Every pipeline requires the size that is reported, and so keeps to this limit.
    let by_subgroups = facts.subgroups.of_workgroup.checked_mul(facts.subgroups.size).filter(|most| *most > 0).unwrap_or(u32::MAX);
    DeviceShape {
        subgroup: facts.subgroups.size,
        invocations: facts.limits.invocations.min(by_subgroups),
        shared_bytes: facts.limits.shared,
        matrix: best.map(|shape| (shape.size[0], shape.size[1], shape.size[2])),
        groups_x: facts.limits.groups[0],
    }
}
