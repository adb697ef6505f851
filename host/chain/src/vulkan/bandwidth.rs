//! How fast a device's memory is, by a plain copy: what a kernel's bytes a second are held against.

use coli_base::Result;
use coli_vk::memory::Pool;
use coli_vk::{Commands, Device};

/// Bytes of the copy; caches of today's devices hold less.
const BYTES: u64 = 256 << 20;
/// The least that says anything.
const LEAST: u64 = 1 << 20;

/// Bytes a second that a copy reads and writes; `None` where there is no room for one or no clock.
pub(super) fn measured(device: &Device) -> Result<Option<f64>> {
    let bytes = BYTES.min(device.free_bytes() / 4) / LEAST * LEAST;
    if bytes < LEAST {
        return Ok(None);
    }
    let (Ok(from), Ok(to)) = (device.buffer(Pool::Scratch, bytes), device.buffer(Pool::Scratch, bytes)) else { return Ok(None) };
    let mut commands = Commands::record(device, 2, |recorder| {
        // The first copy finds pages that nobody has touched.
        recorder.copy(&from, 0, &to, 0, bytes)?;
        recorder.barrier_all();
        recorder.stamp()?;
        recorder.copy(&from, 0, &to, 0, bytes)?;
        recorder.barrier_all();
        recorder.stamp()
    })?;
    commands.submit()?;
    commands.wait()?;
    let times = commands.stamps()?;
    let seconds = times.and_then(|times| Some((times.get(1)? - times.first()?) / 1e9)).filter(|seconds| *seconds > 0.0);
    Ok(seconds.map(|seconds| 2.0 * bytes as f64 / seconds))
}
