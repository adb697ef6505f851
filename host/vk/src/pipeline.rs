//! Pipelines from SPIR-V.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::sync::Arc;

use ash::vk;

use crate::device::{Device, Inner};
use crate::fault::{Fault, Result, failed};

/// A kernel: a module of SPIR-V, trusted as our own code is, and how it is specialized.
#[derive(Debug, Clone)]
pub struct Kernel<'a> {
    /// For messages.
    pub name: &'a str,
    /// The module, as words of four bytes in this machine's order.
    pub spirv: &'a [u8],
    /// Its entry point.
    pub entry: &'a str,
    /// Specialization constants: their numbers and bits.
    pub constants: &'a [(u32, u32)],
    /// Bytes of its push constants, a multiple of 4.
    pub push: u32,
    /// The subgroup size to require; without one the size that the device reports.
    pub subgroup: Option<u32>,
}

impl Default for Kernel<'_> {
    fn default() -> Self {
        Self { name: "", spirv: &[], entry: "main", constants: &[], push: 0, subgroup: None }
    }
}

/// A compiled kernel. Clones share it.
#[derive(Clone)]
pub struct Pipeline {
    pub(crate) hold: Arc<PipelineHold>,
}

pub(crate) struct PipelineHold {
    pub(crate) inner: Arc<Inner>,
    pub(crate) raw: vk::Pipeline,
    pub(crate) layout: vk::PipelineLayout,
    pub(crate) push: u32,
    pub(crate) subgroup: u32,
}

impl Pipeline {
    /// The subgroup size that it runs with: required where the device allows that, else the one that the device reports.
    pub fn subgroup(&self) -> u32 {
        self.hold.subgroup
    }
}

/// The first word of every module.
const MAGIC: u32 = 0x0723_0203;
/// SPIR-V 1.5, which Vulkan 1.2 takes.
const NEWEST: u32 = 0x0001_0500;

/// A module's words, after a look at its first ones: enough to tell a file that is no module, or one for a newer device.
fn words(bytes: &[u8]) -> std::result::Result<Vec<u32>, &'static str> {
    let words: Vec<u32> = bytes.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]])).collect();
    match words.as_slice() {
        _ if !bytes.len().is_multiple_of(4) => Err("its length is no multiple of 4"),
        [MAGIC, version, ..] if *version > NEWEST => Err("it is of a version after 1.5"),
        [MAGIC, _, _, _, _, _, ..] => Ok(words),
        _ => Err("it does not begin as SPIR-V does"),
    }
}

impl Device {
    /// Compiles a kernel. Threads may do so at the same time.
    pub fn pipeline(&self, kernel: &Kernel<'_>) -> Result<Pipeline> {
        let inner = &self.inner;
        inner.check()?;
        let wrong = |why: &str| Fault::wrong(format!("kernel {}: {why}", kernel.name));
        let words = words(kernel.spirv).map_err(wrong)?;
        let entry = CString::new(kernel.entry).map_err(|_| wrong("its entry point has no name"))?;
        if !kernel.push.is_multiple_of(4) || kernel.push > inner.facts.limits.push {
            return Err(wrong(&format!("{} bytes of push constants, the device takes {}", kernel.push, inner.facts.limits.push)));
        }
        inner.pipeline(kernel, &words, &entry, &[]).map(|hold| Pipeline { hold: Arc::new(hold) })
    }
}

/// The subgroup size to require. Every pipeline requires one where it may: left to itself a driver may compile two kernels for two sizes.
fn subgroup(inner: &Inner, kernel: &Kernel<'_>) -> Result<Option<u32>> {
    let has = inner.facts.subgroups;
    match kernel.subgroup {
        None if has.control => Ok(Some(has.size)),
        None => Ok(None),
        Some(size) if has.control && size.is_power_of_two() && size >= has.range.0 && size <= has.range.1 => Ok(Some(size)),
        Some(size) if !has.control && size == has.size => Ok(None),
        Some(size) => {
            let (least, most) = has.range;
            Err(Fault::wrong(format!("kernel {}: subgroups of {size}, the device has {least} to {most}", kernel.name)))
        }
    }
}

impl Inner {
    /// Compiles a kernel whose words and numbers have been looked at, for push constants or for sets of this layout.
    pub(crate) fn pipeline(
        self: &Arc<Self>,
        kernel: &Kernel<'_>,
        words: &[u32],
        entry: &CString,
        sets: &[vk::DescriptorSetLayout],
    ) -> Result<PipelineHold> {
        let subgroup = subgroup(self, kernel)?;
        let info = vk::ShaderModuleCreateInfo::default().code(words);
        // SAFETY: the words begin as a module does; that the rest is one is what trusting a kernel means. One from outside was looked at
        // by `crate::spirv`.
        let module = unsafe { self.raw.create_shader_module(&info, None) }.map_err(failed("vkCreateShaderModule"))?;
        let made = self.layout(kernel.push, sets).and_then(|layout| {
            let made = self.compile(kernel, module, layout, entry, subgroup);
            if made.is_err() {
                // SAFETY: no pipeline uses it.
                unsafe { self.raw.destroy_pipeline_layout(layout, None) };
            }
            Ok((made?, layout))
        });
        // SAFETY: pipelines do not need their modules.
        unsafe { self.raw.destroy_shader_module(module, None) };
        let (raw, layout) = self.note(made)?;
        let size = subgroup.unwrap_or(self.facts.subgroups.size);
        Ok(PipelineHold { inner: Arc::clone(self), raw, layout, push: kernel.push, subgroup: size })
    }

    fn layout(&self, push: u32, sets: &[vk::DescriptorSetLayout]) -> Result<vk::PipelineLayout> {
        let ranges = [vk::PushConstantRange::default().stage_flags(vk::ShaderStageFlags::COMPUTE).size(push)];
        let ranges = if push == 0 { &[][..] } else { &ranges[..] };
        let info = vk::PipelineLayoutCreateInfo::default().push_constant_ranges(ranges).set_layouts(sets);
        // SAFETY: the range is within the device's limit, and the set layouts live.
        unsafe { self.raw.create_pipeline_layout(&info, None) }.map_err(failed("vkCreatePipelineLayout"))
    }

    fn compile(
        &self,
        kernel: &Kernel<'_>,
        module: vk::ShaderModule,
        layout: vk::PipelineLayout,
        entry: &CString,
        subgroup: Option<u32>,
    ) -> Result<vk::Pipeline> {
        let entries: Vec<vk::SpecializationMapEntry> = (0u32..)
            .zip(kernel.constants)
            .map(|(at, (id, _))| vk::SpecializationMapEntry::default().constant_id(*id).offset(4 * at).size(4))
            .collect();
        let data: Vec<u8> = kernel.constants.iter().flat_map(|(_, bits)| bits.to_ne_bytes()).collect();
        let special = vk::SpecializationInfo::default().map_entries(&entries).data(&data);
        let mut size = vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default().required_subgroup_size(subgroup.unwrap_or(0));
        let mut stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(entry)
            .specialization_info(&special);
        if subgroup.is_some() {
            stage = stage.push_next(&mut size);
        }
        let info = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout)];
        // SAFETY: module and layout are of this device and live, and so is all that `info` points at. Threads may share the cache.
        let made = unsafe { self.raw.create_compute_pipelines(self.pipelines, &info, None) };
        match made {
            Ok(made) => made.first().copied().ok_or_else(|| Fault::wrong("vkCreateComputePipelines gave none")),
            Err((_, result)) => match Fault::of("vkCreateComputePipelines", result) {
                Fault::Call { result, .. } => {
                    Err(Fault::wrong(format!("kernel {}: the driver does not compile it: {result}", kernel.name)))
                }
                fault => Err(fault),
            },
        }
    }
}

impl Drop for PipelineHold {
    fn drop(&mut self) {
        if self.inner.is_stuck() {
            return;
        }
        // SAFETY: commands keep the pipelines that they use, and outlive what they submitted.
        unsafe { self.inner.raw.destroy_pipeline(self.raw, None) };
        // SAFETY: as above.
        unsafe { self.inner.raw.destroy_pipeline_layout(self.layout, None) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_told_from_what_is_none() {
        let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        assert_eq!(words(&bytes(&[MAGIC, NEWEST, 0, 1, 0, 0])).unwrap().len(), 6);
        for broken in [vec![], vec![MAGIC], vec![MAGIC.swap_bytes(), NEWEST, 0, 1, 0, 0], vec![0; 9], vec![MAGIC, 0x0001_0600, 0, 1, 0, 0]]
        {
            assert!(words(&bytes(&broken)).is_err(), "{broken:?}");
        }
        assert!(words(&bytes(&[MAGIC, NEWEST, 0, 1, 0, 0])[1..]).is_err());
    }
}
