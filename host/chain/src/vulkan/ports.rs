//! Ports and slots of an executor on a device, as the host sees them.

use std::collections::BTreeSet;
use std::ops::Range;

use coli_base::Result;
use coli_vk::{Commands, Piece};

use super::executor::VulkanExecutor;
use crate::ports::PortSource;
use crate::program::{LinkedPort, Place, Program};

impl VulkanExecutor {
    /// Takes a port's rows over from another executor.
    pub(crate) fn take_port(&mut self, port: &LinkedPort, words: &[u32]) -> Result<()> {
        let Some(slot) = &self.slots[port.slot] else { return Ok(()) };
        Ok(self.setup.device.device().upload(&[Piece { to: slot, at: 0, from: bytes(words) }])?)
    }

    /// The first `rows` rows of a slot, for another executor.
    pub(crate) fn port_words(&self, port: &LinkedPort, rows: usize) -> Result<Vec<u32>> {
        let mut words = vec![0; rows * port.spec.width as usize];
        if let Some(slot) = &self.slots[port.slot] {
            self.setup.device.device().download(slot, 0, bytes_mut(&mut words))?;
        }
        Ok(words)
    }

    /// Fills all that no op of the next step has written with NaN.
    pub(crate) fn poison(&mut self) -> Result<()> {
        let nan = f32::NAN.to_bits();
        self.inputs.iter_mut().for_each(|words| words.fill(nan));
        let mut commands = Commands::record(self.setup.device.device(), 0, |recorder| {
            for buffer in self.slots.iter().flatten().chain([&self.memory.scratch]) {
                recorder.fill(buffer, 0, buffer.bytes() / 4 * 4, nan)?;
            }
            Ok(())
        })?;
        commands.submit()?;
        Ok(commands.wait()?)
    }
}

impl PortSource for VulkanExecutor {
    fn words(&self, port: &LinkedPort, rows: usize) -> Result<Option<Vec<u32>>> {
        let Some((key, frame)) = self.last.as_ref().and_then(|key| Some((key, self.frames.get(key)?))) else { return Ok(None) };
        if let Some(readout) = frame.readouts.iter().find(|readout| readout.slot == port.slot) {
            let mut words = vec![0; rows.min(readout.words as usize)];
            self.memory.readback.read(readout.at, bytes_mut(&mut words))?;
            return Ok(Some(words));
        }
        // A slot that more than one op of the frame has written holds the last one's numbers.
        let segments = &self.setup.program.segments[key.segments.clone()];
        let writes =
            segments.iter().flat_map(|segment| &segment.ops).flat_map(|op| &op.outs).filter(|(slot, _)| *slot == port.slot).count();
        let final_writer =
            segments.iter().rev().find(|segment| segment.ops.iter().any(|op| op.outs.iter().any(|(slot, _)| *slot == port.slot)));
        let is_its =
            final_writer.is_none_or(|segment| segment.outputs.iter().any(|output| output.spec == port.spec && output.slot == port.slot));
        if writes > 1 && !is_its { Ok(None) } else { self.port_words(port, rows).map(Some) }
    }
}

/// The slots that some segments use.
pub(super) fn used_slots(program: &Program, segments: &Range<usize>) -> BTreeSet<usize> {
    let segments = || program.segments[segments.clone()].iter();
    let ops = || segments().flat_map(|segment| &segment.ops);
    let ins = ops().flat_map(|op| &op.ins).filter_map(|operand| match operand.place {
        Place::Slot(slot) => Some(slot),
        Place::Input(_) => None,
    });
    let outs = ops().flat_map(|op| op.outs.iter().map(|(slot, _)| *slot));
    let ports = segments().flat_map(|segment| segment.outputs.iter().chain(segment.reads.iter().map(|read| &read.port)));
    ins.chain(outs).chain(ports.map(|port| port.slot)).chain(program.given.iter().map(|port| port.slot)).collect()
}

pub(super) fn bytes(words: &[u32]) -> &[u8] {
    bytemuck::cast_slice(words)
}

pub(super) fn bytes_mut(words: &mut [u32]) -> &mut [u8] {
    bytemuck::cast_slice_mut(words)
}
