//! Loader, drivers, devices and their facts.

use std::time::Duration;

use coli_vk::choose::{Wanted, choose, refusal};
use coli_vk::facts::{DeviceKind, Element, Version};
use coli_vk::loader::{Places, System, candidates};
use coli_vk::memory::Pool;
use coli_vk::queues::UploadQueue;
use coli_vk::{Commands, Device, Fault, Instance, Options, Piece};

use super::{floats, instance, kernel, loader, open};
use crate::probe;

/// What holds for every device that is usable.
pub fn facts() {
    let devices = instance().devices().unwrap();
    assert_eq!(devices.len(), 1, "the driver shows one device");
    let device = &devices[0];
    assert_eq!(refusal(device), None);
    assert!(device.api >= Version { major: 1, minor: 2 } && !device.name.is_empty() && !device.driver.name.is_empty());
    assert!(device.limits.allocation >= 1 << 30 && device.limits.push >= 128 && device.limits.groups[0] >= 65535);
    assert!(device.memory.largest_local() >= 1 << 30 && device.subgroups.size.is_power_of_two());
    assert_eq!(device.kind, DeviceKind::Cpu);
    // A CPU device only on request: by number, by part of its name, or by the flag.
    assert!(matches!(choose(&devices, &Wanted::Best { cpu: false }), Err(Fault::NoDevice { .. })));
    assert_eq!(choose(&devices, &Wanted::Index(0)).unwrap().at, 0);
    let part = device.name.to_uppercase().split(' ').next().unwrap().to_string();
    assert_eq!(choose(&devices, &Wanted::Name(part)).unwrap().at, 0);
    let device = open(&Options::default());
    assert!(!device.placement().staged && device.free_bytes() > 1 << 28, "{} {}", device.placement(), device.free_bytes());
    assert_eq!(device.queues().kind, UploadQueue::Main);
}

pub fn lavapipe() {
    let device = instance().devices().unwrap().remove(0);
    let has = device.features;
    assert!(device.name.contains("llvmpipe") && device.driver.id == 13);
    assert!(has.storage8 && has.storage16 && has.float16 && has.int64 && has.integer_dot && !has.integer_dot_fast && has.host_import);
    assert!(device.subgroups.control && device.subgroups.size == 8 && device.subgroups.range == (8, 8));
    assert_eq!(device.limits.import_align, 4096);
}

pub fn newer_lavapipe() {
    let device = instance().devices().unwrap().remove(0);
    let has = device.features;
    assert!(has.cooperative_matrix && has.memory_budget && has.memory_priority && device.subgroups.clustered);
    let f16 = [Element::F16, Element::F16, Element::F32, Element::F32];
    assert!(device.matrices.iter().any(|shape| shape.size == [8; 3] && shape.elements == f16), "{:?}", device.matrices);
    let byte = [Element::Signed(8), Element::Signed(8), Element::Signed(32), Element::Signed(32)];
    assert!(device.matrices.iter().any(|shape| shape.elements == byte), "{:?}", device.matrices);
    // They are on in the opened device too, and the books follow the driver's budget.
    let device = open(&Options::default());
    assert!(device.facts().features.cooperative_matrix && !device.facts().matrices.is_empty());
    let limited = open(&Options { limit: Some(1 << 28), ..Options::default() });
    assert!(device.free_bytes() > limited.free_bytes() && limited.free_bytes() == 1 << 28);
}

pub fn swiftshader() {
    let device = instance().devices().unwrap().remove(0);
    let has = device.features;
    assert!(device.name.contains("SwiftShader"), "{}", device.name);
    assert!(!has.storage8 && !has.storage16 && !has.float16 && !has.int8 && !has.int64 && !has.cooperative_matrix && !has.memory_budget);
    // It lists the extension, and says that no buffer can be made of such pages.
    assert!(!has.host_import && open(&Options::default()).host_pages(4096).is_err());
    assert_eq!(device.subgroups.size, 4);
}

/// What this machine has besides CPU devices, if anything: says which, so that the starter knows.
pub fn card() {
    let devices = Instance::open(&loader()).and_then(|instance| instance.devices()).unwrap_or_default();
    let Ok(chosen) = choose(&devices, &Wanted::Best { cpu: false }) else { return println!("CARD none") };
    let facts = &devices[chosen.at];
    println!("CARD {}, {}, {facts:?}", facts.name, chosen.reason);
    let device = open(&Options::default());
    assert_eq!(device.facts().name, facts.name, "a card comes before every CPU device");
    println!("{}, {:?}, {} MiB free", device.placement(), device.queues(), device.free_bytes() >> 20);
}

/// A driver that says of itself that it lacks everything is refused by name; and, opened all the same, it accepts everything and runs
/// nothing, of which no success may come.
pub fn mock() {
    let instance = instance();
    let devices = instance.devices().unwrap();
    let why = refusal(&devices[0]).unwrap();
    assert!(why.contains("bufferDeviceAddress") && why.contains("timelineSemaphore") && why.contains("subgroup arithmetic"), "{why}");
    assert!(matches!(choose(&devices, &Wanted::Index(0)), Err(Fault::NoDevice { why: said }) if said.contains(&why)));
    assert!(matches!(Device::open(&instance, &devices[0], &Options::default()), Err(Fault::NoDevice { .. })));
    let mut usable = devices[0].clone();
    usable.subgroups.arithmetic = true;
    usable.features.buffer_address = true;
    usable.features.timeline = true;
    usable.features.memory_budget = false;
    usable.limits.allocation = 1 << 30;
    usable.limits.buffer = 1 << 30;
    let options = Options { fill: false, staged: Some(true), patience: Duration::from_millis(200), ..Options::default() };
    let device = Device::open(&instance, &usable, &options).unwrap();
    // Device memory that the host does not see, and a queue that only copies: no other driver here has them.
    assert_eq!(device.queues().kind, UploadQueue::Transfer);
    let buffer = device.buffer(Pool::Weights, 20 << 20).unwrap();
    assert!(!buffer.is_mapped() && buffer.write(0, &[1]).is_err());
    device.upload(&[Piece { to: &buffer, at: 0, from: &vec![7; 20 << 20] }]).unwrap();
    assert_eq!((device.uploads().staged, device.uploads().submits), (20 << 20, 2));
    never_done(&device);
}

fn never_done(device: &Device) {
    let buffer = device.buffer(Pool::Readback, 256).unwrap();
    let mut commands = Commands::record(device, 0, |recorder| recorder.fill(&buffer, 0, 256, 7)).unwrap();
    commands.submit().unwrap();
    let fault = commands.wait().unwrap_err();
    assert!(fault.is_lost() && device.is_lost(), "{fault}");
    println!("mock: {fault}");
    // Nothing more is asked of it, and everything can still be dropped.
    assert!(commands.submit().unwrap_err().is_lost());
    assert!(device.buffer(Pool::Scratch, 256).is_err_and(|fault| fault.is_lost()));
    assert!(device.upload(&[]).unwrap_err().is_lost());
}

pub fn no_driver() {
    // A loader says so when it starts, or lists nothing.
    match Instance::open(&loader()) {
        Err(fault) => assert!(matches!(fault, Fault::NoDriver { .. }), "{fault:?}"),
        Ok(instance) => {
            let none = instance.devices().unwrap_or_default();
            assert!(matches!(choose(&none, &Wanted::Best { cpu: true }), Err(Fault::NoDevice { .. })));
        }
    }
}

pub fn no_loader() {
    let nowhere = Places { loader: Some("no-such-folder/libvulkan.so.1".into()), ..Places::default() };
    let fault = Instance::open(&candidates(System::here(), &nowhere)).err().unwrap();
    assert!(matches!(&fault, Fault::NoLoader { tried, .. } if tried == &["no-such-folder/libvulkan.so.1"]), "{fault:?}");
    let line = coli_base::Error::from(fault);
    assert!(line.text.starts_with("no Vulkan loader: tried no-such-folder/libvulkan.so.1") && !line.text.contains('\n'));
    // A file that is no library, and one that is a library and no loader.
    let program = std::env::current_exe().unwrap();
    assert!(matches!(Instance::open(&[program]), Err(Fault::NoLoader { .. })));
    assert!(matches!(Instance::open(&["libc.so.6".into()]), Err(Fault::NoLoader { .. })));
    assert!(matches!(Instance::open(&[]), Err(Fault::NoLoader { .. })));
}

/// Objects outlive the handles that they came from, and closing in any order is quiet.
pub fn close() {
    for _ in 0..3 {
        let device = open(&Options::default());
        let pipeline = kernel(&device, probe::COPY, 64);
        let buffer = floats(&device, Pool::Weights, &[1.0; 64]);
        let push = probe::push(buffer.address(), buffer.address(), 64, 2.0);
        let mut commands = Commands::record(&device, 0, |recorder| recorder.dispatch(&pipeline, &push, [1, 1, 1])).unwrap();
        commands.submit().unwrap();
        drop((device, pipeline));
        // In flight: dropping the commands waits.
        drop(commands);
        drop(buffer);
    }
}
