//! Kernels from outside, over bound buffers.

use coli_vk::memory::Pool;
use coli_vk::{Bound, BoundKernel, BoundPipeline, Buffer, Commands, Device, Fault, Options, Piece};

use super::{floats, open, ramp, values};
use crate::probe;

fn robust_options() -> Options {
    Options { robust: true, ..Options::default() }
}

fn kernel(device: &Device, constants: &[(u32, u32)]) -> coli_vk::Result<BoundPipeline> {
    device.bound_pipeline(&BoundKernel { name: "bound", spirv: probe::BOUND, buffers: 3, written: 1..2, constants })
}

/// The kernel's words: how many floats, and where from and to.
fn words(device: &Device, count: u32, from: u32, to: u32) -> Buffer {
    let buffer = device.buffer(Pool::Upload, 12).unwrap();
    let bytes: Vec<u8> = [count, from, to].iter().flat_map(|word| word.to_ne_bytes()).collect();
    buffer.write(0, &bytes).unwrap();
    buffer
}

fn run(device: &Device, pipeline: &BoundPipeline, bound: &[Bound<'_>], groups: u32) {
    let mut commands = Commands::record(device, 0, |recorder| recorder.dispatch_bound(pipeline, bound, [groups, 1, 1])).unwrap();
    for _ in 0..2 {
        commands.submit().unwrap();
        commands.wait().unwrap();
    }
}

/// What is asked for is computed, from and to parts of buffers; the recording keeps what it uses.
pub fn bound() {
    let device = open(&robust_options());
    assert!(device.facts().features.robust && device.facts().limits.bindings >= 4);
    let pipeline = kernel(&device, &[(0, 32), (2, 5)]).unwrap();
    assert_eq!((pipeline.workgroup(), pipeline.subgroup()), ([32, 1, 1], device.facts().subgroups.size));
    let input = ramp(300);
    let (from, to) = (floats(&device, Pool::Weights, &input), floats(&device, Pool::Scratch, &[7.0; 300]));
    let mut commands = {
        let words = words(&device, 100, 0, 0);
        let bound = [Bound { buffer: &from, at: 256, bytes: 400 }, Bound { buffer: &to, at: 512, bytes: 400 }, Bound::whole(&words)];
        Commands::record(&device, 0, |recorder| recorder.dispatch_bound(&pipeline, &bound, [4, 1, 1])).unwrap()
    };
    drop(pipeline);
    commands.submit().unwrap();
    commands.wait().unwrap();
    let mut expected = vec![7.0; 300];
    (0..100).for_each(|at| expected[128 + at] = input[64 + at] + 5.0);
    assert_eq!(values(&device, &to, 300), expected);
}

/// Reads beyond what is bound give zeros, and writes beyond it nothing, though the same buffer goes on there.
pub fn robust() {
    let device = open(&robust_options());
    let pipeline = kernel(&device, &[(0, 64)]).unwrap();
    let (from, to) = (floats(&device, Pool::Weights, &[3.0; 4096]), floats(&device, Pool::Scratch, &[7.0; 4096]));
    let part = |buffer| Bound { buffer, at: 1024, bytes: 128 };
    // Far beyond, too: the index wraps around for no driver.
    for away in [32, 64, 4096, 1 << 20, 0x3fff_ffc0, 0xffff_ff00] {
        let words = words(&device, 64, away, 0);
        run(&device, &pipeline, &[part(&from), part(&to), Bound::whole(&words)], 1);
        let read = values(&device, &to, 4096);
        assert!(read[256..288].iter().all(|value| *value == 1.0), "{away}: {:?}", &read[256..288]);
        assert!(read[..256].iter().chain(&read[288..]).all(|value| *value == 7.0), "{away}: only 32 of 64 are inside");
    }
    for away in [32, 64, 1 << 20, 0xffff_ff00] {
        let words = words(&device, 64, 0, away);
        run(&device, &pipeline, &[part(&from), part(&to), Bound::whole(&words)], 1);
        let left = values(&device, &to, 4096);
        assert!(left[..256].iter().chain(&left[288..]).all(|value| *value == 7.0), "{away}: nothing beyond is written");
    }
    // A block of words that is shorter than the kernel believes.
    let words = words(&device, 64, 0, 0);
    run(&device, &pipeline, &[part(&from), part(&to), Bound { buffer: &words, at: 0, bytes: 4 }], 1);
    assert_eq!(values(&device, &to, 4096)[256..288], [4.0; 32]);
}

/// Wrong requests are errors by name.
pub fn bound_misuse() {
    let (device, plain) = (open(&robust_options()), open(&Options::default()));
    let text = |result: coli_vk::Result<BoundPipeline>| result.err().map(|fault| fault.to_string()).unwrap();
    assert!(text(kernel(&plain, &[])).contains("kernel bound: the device was not opened with robust access"));
    assert!(text(kernel(&device, &[(0, 1 << 20)])).contains("workgroups of 1048576 x 1 x 1"));
    let trusted = probe::bytes();
    let asked = |spirv, buffers, written| device.bound_pipeline(&BoundKernel { name: "odd", spirv, buffers, written, constants: &[] });
    assert!(text(asked(probe::BOUND, 2, 1..2)).contains("kernel odd: binding 2: it is given 2 buffers"));
    assert!(text(asked(probe::BOUND, 3, 2..3)).contains("writes to binding 1"));
    assert!(text(asked(probe::BOUND, 1 << 24, 1..2)).contains("the device binds 1 to"));
    assert!(text(asked(&trusted, 3, 1..2)).contains("capability PhysicalStorageBufferAddresses"));
    assert!(text(asked(b"GLSL", 3, 1..2)).contains("does not begin as SPIR-V does"));
    let pipeline = kernel(&device, &[(0, 64)]).unwrap();
    let (from, to, words) =
        (floats(&device, Pool::Weights, &[1.0; 256]), floats(&device, Pool::Scratch, &[1.0; 256]), words(&device, 0, 0, 0));
    let foreign = plain.buffer(Pool::Scratch, 64).unwrap();
    let record = |bound: &[Bound<'_>], groups| {
        let recorded = Commands::record(&device, 0, |recorder| recorder.dispatch_bound(&pipeline, bound, groups));
        assert!(matches!(recorded, Err(Fault::Wrong { .. })), "{:?}", recorded.err());
    };
    let [one, two, three] = [Bound::whole(&from), Bound::whole(&to), Bound::whole(&words)];
    record(&[one, two], [1, 1, 1]);
    record(&[one, two, three], [0, 1, 1]);
    record(&[one, two, Bound::whole(&foreign)], [1, 1, 1]);
    record(&[one, Bound { at: 4, bytes: 4, ..two }, three], [1, 1, 1]);
    record(&[one, Bound { bytes: 0, ..two }, three], [1, 1, 1]);
    record(&[one, Bound { bytes: 5, ..two }, three], [1, 1, 1]);
    record(&[one, Bound { bytes: 1028, ..two }, three], [1, 1, 1]);
    record(&[one, Bound { at: 512, bytes: 768, ..two }, three], [1, 1, 1]);
    record(&[two, two, three], [1, 1, 1]);
    run(&device, &pipeline, &[one, two, three], 1);
    device.upload(&[Piece { to: &to, at: 0, from: &[0; 4] }]).unwrap();
}
