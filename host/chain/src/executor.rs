//! An executor of any kind, as a stage of a relay has it.

use coli_base::Result;
use coli_shaders::contract::Team;

use crate::cpu::{CpuExecutor, Ports, Run};
use crate::profile::Profile;
use crate::program::LinkedPort;
use crate::state::States;
use crate::step::Step;
use crate::vulkan::VulkanExecutor;

/// Runs some of a program's segments.
pub(crate) enum Executor {
    /// On the CPU.
    Cpu(Box<CpuExecutor>),
    /// On a device.
    Vulkan(Box<VulkanExecutor>),
}

impl Executor {
    pub fn begin<'s>(&mut self, states: &mut States, step: &'s Step) -> Result<Run<'s>> {
        match self {
            Self::Cpu(cpu) => cpu.begin(states, step),
            Self::Vulkan(vulkan) => vulkan.begin(states, step),
        }
    }

    pub fn run_segments(
        &mut self,
        states: &mut States,
        run: &mut Run<'_>,
        team: &dyn Team,
        observe: &mut dyn FnMut(&Ports<'_>) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Cpu(cpu) => cpu.run_segments(states, run, team, observe),
            Self::Vulkan(vulkan) => vulkan.run_segments(states, run, observe),
        }
    }

    /// The first `rows` rows of a port's slot, for another executor.
    pub fn port_words(&self, port: &LinkedPort, rows: usize) -> Result<Vec<u32>> {
        match self {
            Self::Cpu(cpu) => Ok(cpu.port_words(port, rows).to_vec()),
            Self::Vulkan(vulkan) => vulkan.port_words(port, rows),
        }
    }

    /// Takes a port's rows over from another executor.
    pub fn take_port(&mut self, port: &LinkedPort, words: &[u32]) -> Result<()> {
        match self {
            Self::Cpu(cpu) => cpu.take_port(port, words),
            Self::Vulkan(vulkan) => return vulkan.take_port(port, words),
        }
        Ok(())
    }

    /// Fills all that no op of the next step has written with NaN.
    pub fn poison(&mut self) -> Result<()> {
        match self {
            Self::Cpu(cpu) => cpu.poison(),
            Self::Vulkan(vulkan) => return vulkan.poison(),
        }
        Ok(())
    }

    pub fn set_tile(&mut self, rows: usize) {
        match self {
            Self::Cpu(cpu) => cpu.set_tile(rows),
            Self::Vulkan(vulkan) => vulkan.set_tile(rows),
        }
    }

    pub fn set_profile(&mut self, wanted: bool) -> Option<Profile> {
        match self {
            Self::Cpu(cpu) => cpu.set_profile(wanted),
            Self::Vulkan(vulkan) => vulkan.set_profile(wanted),
        }
    }

    /// What runs on a device, for tests that look at it.
    pub fn vulkan(&self) -> Option<&VulkanExecutor> {
        match self {
            Self::Cpu(_) => None,
            Self::Vulkan(vulkan) => Some(vulkan),
        }
    }
}
