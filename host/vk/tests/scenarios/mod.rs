//! What is tried on a driver, by name. Each runs in a process of its own.

mod bound;
mod device;
mod memory;
mod work;

use std::path::PathBuf;

use coli_vk::choose::{Wanted, choose};
use coli_vk::loader::{Places, System, candidates};
use coli_vk::memory::Pool;
use coli_vk::{Buffer, Commands, Device, Instance, Kernel, Options, Piece, Pipeline};

use crate::probe;

/// Runs a scenario.
pub fn run(name: &str) {
    match name {
        "facts" => device::facts(),
        "lavapipe" => device::lavapipe(),
        "newer-lavapipe" => device::newer_lavapipe(),
        "swiftshader" => device::swiftshader(),
        "mock" => device::mock(),
        "card" => device::card(),
        "no-driver" => device::no_driver(),
        "no-loader" => device::no_loader(),
        "close" => device::close(),
        "copy" => work::copy(),
        "copy-staged" => work::copy_staged(),
        "copy-window" => work::copy_window(),
        "subgroups" => work::subgroups(),
        "again" => work::again(),
        "indirect" => work::indirect(),
        "stamps" => work::stamps(),
        "cache" => work::cache(),
        "kernels" => work::kernels(),
        "misuse" => work::misuse(),
        "threads" => work::threads(),
        "invalid" => work::invalid(),
        "figures" => work::figures(),
        "bound" => bound::bound(),
        "robust" => bound::robust(),
        "bound-misuse" => bound::bound_misuse(),
        "memory" => memory::memory(),
        "limit" => memory::limit(),
        "fresh" => memory::fresh(),
        "dropped" => memory::dropped(),
        "import" => memory::import(),
        "probe" => memory::probe(),
        "probe-refused" => memory::probe_refused(),
        other => panic!("there is no scenario {other}"),
    }
}

fn loader() -> Vec<PathBuf> {
    candidates(System::here(), &Places::default())
}

fn instance() -> Instance {
    Instance::open(&loader()).unwrap()
}

/// The one device of the driver.
fn open(options: &Options) -> Device {
    let instance = instance();
    let devices = instance.devices().unwrap();
    let chosen = choose(&devices, &Wanted::Best { cpu: true }).unwrap();
    Device::open(&instance, &devices[chosen.at], options).unwrap()
}

fn kernel(device: &Device, mode: u32, width: u32) -> Pipeline {
    let spirv = probe::bytes();
    let constants = [(0, width), (1, mode)];
    device.pipeline(&Kernel { name: "probe", spirv: &spirv, constants: &constants, push: 24, ..Kernel::default() }).unwrap()
}

fn floats(device: &Device, pool: Pool, values: &[f32]) -> Buffer {
    let buffer = device.buffer(pool, values.len() as u64 * 4).unwrap();
    device.upload(&[Piece { to: &buffer, at: 0, from: &bytes(values) }]).unwrap();
    buffer
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn values(device: &Device, buffer: &Buffer, count: usize) -> Vec<f32> {
    let mut bytes = vec![0; count * 4];
    device.download(buffer, 0, &mut bytes).unwrap();
    bytes.chunks_exact(4).map(|word| f32::from_ne_bytes(word.try_into().unwrap())).collect()
}

/// Small whole numbers, so that every sum and product is exact.
fn ramp(count: usize) -> Vec<f32> {
    (0..count).map(|at| f32::from(u16::try_from(at % 61).unwrap()) - 30.0).collect()
}

/// Runs a kernel once over so many floats.
fn once(device: &Device, pipeline: &Pipeline, width: u32, from: &Buffer, to: &Buffer, count: u32, factor: f32) {
    let push = probe::push(from.address(), to.address(), count, factor);
    let mut commands = Commands::record(device, 0, |recorder| {
        recorder.keep(from);
        recorder.keep(to);
        recorder.dispatch(pipeline, &push, [count.div_ceil(width), 1, 1])
    })
    .unwrap();
    commands.submit().unwrap();
    commands.wait().unwrap();
}
