//! Kernels, commands, waits and the pipeline cache.

use std::time::{Duration, Instant};

use coli_vk::memory::{MIB, Pool};
use coli_vk::{Commands, Fault, Kernel, Options, Piece};

use super::{floats, kernel, once, open, ramp, values};
use crate::probe;

/// Uploads, runs the copy kernel, and reads back; what the pools and uploads then say.
fn copied(options: &Options) -> (Vec<f32>, coli_vk::UploadReport, bool) {
    let device = open(options);
    // More than two slots of staging, and a length that is no multiple of anything.
    let input = ramp((40 * MIB / 4) as usize + 3);
    let from = floats(&device, Pool::Weights, &input);
    let to = device.buffer(Pool::Scratch, input.len() as u64 * 4).unwrap();
    let width = 64;
    let pipeline = kernel(&device, probe::COPY, width);
    let count = 4_000_003;
    once(&device, &pipeline, width, &from, &to, count, 3.0);
    let output = values(&device, &to, count as usize);
    let expected: Vec<f32> = input.iter().take(count as usize).map(|value| value * 3.0).collect();
    assert!(output == expected, "the copy is not what was asked for");
    assert!(values(&device, &from, input.len()) == input, "what was uploaded comes back");
    (output, device.uploads(), from.is_mapped())
}

pub fn copy() {
    let staged = open(&Options::default()).placement().staged;
    let (_, report, mapped) = copied(&Options::default());
    assert_eq!(mapped, !staged);
    assert!(staged || report.mapped > 0 && report.staged == 0 && report.submits == 0, "{report:?}");
}

pub fn copy_staged() {
    let mapped = copied(&Options { staged: Some(false), ..Options::default() }).0;
    for fill in [true, false] {
        let options = Options { staged: Some(true), import: false, fill, ..Options::default() };
        let (staged, report, is_mapped) = copied(&options);
        assert!(!is_mapped && report.staged == 40 * MIB + 12 && report.imported == 0 && report.submits == 3, "{report:?}");
        assert!(staged == mapped, "staged and mapped uploads give the same bits");
    }
}

/// A window of 246 MiB, with the decision left alone.
pub fn copy_window() {
    let options = Options { window: Some(246 * MIB), ..Options::default() };
    let device = open(&options);
    assert!(device.placement().staged && device.placement().reason.starts_with("246 of "), "{}", device.placement());
    let (_, report, is_mapped) = copied(&options);
    assert!(!is_mapped && report.staged + report.imported == 40 * MIB + 12, "{report:?}");
}

pub fn subgroups() {
    let device = open(&Options::default());
    let has = device.facts().subgroups;
    let count = 256;
    let input = ramp(count);
    let from = floats(&device, Pool::Upload, &input);
    let to = device.buffer(Pool::Scratch, 1024).unwrap();
    let sizes = kernel(&device, probe::SIZE, 64);
    assert_eq!(sizes.subgroup(), has.size);
    once(&device, &sizes, 64, &from, &to, 256, 0.0);
    let size = has.size as usize;
    assert_eq!(values(&device, &to, count), vec![f32::from(u16::try_from(size).unwrap()); count], "the size that was required");
    once(&device, &kernel(&device, probe::SUM, 64), 64, &from, &to, 256, 0.0);
    let sums: Vec<f32> = input.chunks(size).flat_map(|part| vec![part.iter().sum::<f32>(); part.len()]).collect();
    assert_eq!(values(&device, &to, count), sums);
    println!("subgroups of {size}");
}

/// Recorded once, submitted many times; each submit sees what the one before wrote.
pub fn again() {
    let device = open(&Options::default());
    let width = 64;
    let pipeline = kernel(&device, probe::ADD, width);
    let sum = floats(&device, Pool::Kv, &[0.0; 1000]);
    let push = probe::push(sum.address(), sum.address(), 1000, 1.0);
    let mut commands = Commands::record(&device, 0, |recorder| {
        recorder.keep(&sum);
        for _ in 0..3 {
            recorder.dispatch(&pipeline, &push, [1000u32.div_ceil(width), 1, 1])?;
            recorder.barrier();
        }
        Ok(())
    })
    .unwrap();
    for _ in 0..50 {
        commands.submit().unwrap();
        assert!(matches!(commands.submit(), Err(Fault::Wrong { .. })), "one submit at a time");
        commands.wait().unwrap();
        assert!(commands.is_done().unwrap());
    }
    // Two recordings in flight at once run in the order of their submits.
    let mut other = Commands::record(&device, 0, |recorder| {
        recorder.keep(&sum);
        recorder.fill(&sum, 0, 4000, 0)
    })
    .unwrap();
    assert_eq!(values(&device, &sum, 1000), vec![150.0; 1000]);
    commands.submit().unwrap();
    other.submit().unwrap();
    commands.wait().unwrap();
    commands.submit().unwrap();
    other.wait().unwrap();
    commands.wait().unwrap();
    assert_eq!(values(&device, &sum, 1000), vec![3.0; 1000]);
}

pub fn indirect() {
    let device = open(&Options::default());
    let pipeline = kernel(&device, probe::ADD, 64);
    let sum = floats(&device, Pool::Scratch, &[0.0; 256]);
    let grid = device.buffer(Pool::Upload, 64).unwrap();
    let push = probe::push(sum.address(), sum.address(), 256, 1.0);
    let mut commands = Commands::record(&device, 0, |recorder| {
        recorder.keep(&sum);
        recorder.dispatch_indirect(&pipeline, &push, &grid, 16)
    })
    .unwrap();
    // The grid changes from submit to submit: 2 workgroups, 4, none.
    for groups in [2u32, 4, 0] {
        let words: Vec<u8> = [groups, 1, 1].iter().flat_map(|word| word.to_ne_bytes()).collect();
        grid.write(16, &words).unwrap();
        commands.submit().unwrap();
        commands.wait().unwrap();
    }
    assert_eq!(values(&device, &sum, 256), [vec![2.0; 128], vec![1.0; 128]].concat());
}

pub fn stamps() {
    let device = open(&Options::default());
    let pipeline = kernel(&device, probe::ADD, 64);
    let sum = floats(&device, Pool::Scratch, &[0.0; 64]);
    let push = probe::push(sum.address(), sum.address(), 64, 1.0);
    let mut commands = Commands::record(&device, 3, |recorder| {
        recorder.keep(&sum);
        for _ in 0..3 {
            recorder.stamp()?;
            recorder.dispatch(&pipeline, &push, [1, 1, 1])?;
            recorder.barrier();
        }
        assert!(matches!(recorder.stamp(), Err(Fault::Wrong { .. })), "room was for three");
        Ok(())
    })
    .unwrap();
    for _ in 0..2 {
        commands.submit().unwrap();
        commands.wait().unwrap();
        let stamps = commands.stamps().unwrap().unwrap();
        assert!(stamps.len() == 3 && stamps[0] == 0.0 && stamps.is_sorted(), "{stamps:?}");
    }
    let mut plain = Commands::record(&device, 0, |_| Ok(())).unwrap();
    plain.submit().unwrap();
    plain.wait().unwrap();
    assert_eq!(plain.stamps().unwrap(), None);
}

pub fn cache() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { cache: Some(folder.path().join("pipelines")), ..Options::default() };
    let made = || {
        let device = open(&options);
        kernel(&device, probe::COPY, 64);
        let read = device.cache_was_read();
        device.save_cache().unwrap();
        (read, coli_vk::cache::file(options.cache.as_ref().unwrap(), device.facts()))
    };
    let (read, file) = made();
    assert!(!read && file.is_file());
    assert!(made().0, "the second start reads it");
    let mut broken = std::fs::read(&file).unwrap();
    *broken.last_mut().unwrap() ^= 1;
    std::fs::write(&file, &broken).unwrap();
    assert!(!made().0, "a broken file is ignored");
    assert!(made().0, "and was written anew");
    std::fs::write(&file, b"").unwrap();
    assert!(!made().0);
}

/// What is no kernel is refused before the driver sees it, and a subgroup size that the device lacks by name.
pub fn kernels() {
    let device = open(&Options::default());
    let spirv = probe::bytes();
    let whole = Kernel { name: "odd", spirv: &spirv, constants: &[(0, 64), (1, 0)], push: 24, ..Kernel::default() };
    let refused = |kernel: Kernel<'_>| device.pipeline(&kernel).err().map(|fault| fault.to_string()).unwrap();
    assert!(refused(Kernel { spirv: &spirv[4..], ..whole.clone() }).contains("kernel odd"));
    assert!(refused(Kernel { spirv: b"GLSL", ..whole.clone() }).contains("SPIR-V"));
    assert!(refused(Kernel { push: 1 << 20, ..whole.clone() }).contains("push constants"));
    assert!(refused(Kernel { subgroup: Some(3), ..whole.clone() }).contains("subgroups of 3"));
    assert!(refused(Kernel { subgroup: Some(1024), ..whole.clone() }).contains("subgroups of 1024"));
    let size = device.facts().subgroups.size;
    assert_eq!(device.pipeline(&Kernel { subgroup: Some(size), ..whole }).unwrap().subgroup(), size);
}

/// Wrong requests are errors by name, and leave the device as it was.
pub fn misuse() {
    let (device, other) = (open(&Options::default()), open(&Options::default()));
    let pipeline = kernel(&device, probe::COPY, 64);
    let (scratch, foreign) = (device.buffer(Pool::Scratch, 256).unwrap(), other.buffer(Pool::Scratch, 256).unwrap());
    let recorded = |record: &mut dyn FnMut(&mut coli_vk::Recorder<'_>) -> coli_vk::Result<()>| {
        Commands::record(&device, 0, |recorder| record(recorder)).map(|_| ())
    };
    let wrong = |result: coli_vk::Result<()>| assert!(matches!(&result, Err(Fault::Wrong { .. })), "{result:?}");
    let push = probe::push(0, 0, 0, 0.0);
    let most = device.facts().limits.groups[0];
    wrong(recorded(&mut |recorder| recorder.dispatch(&pipeline, &push[1..], [1, 1, 1])));
    wrong(recorded(&mut |recorder| recorder.dispatch(&pipeline, &push, [0, 1, 1])));
    if let Some(more) = most.checked_add(1) {
        wrong(recorded(&mut |recorder| recorder.dispatch(&pipeline, &push, [more, 1, 1])));
    }
    wrong(recorded(&mut |recorder| recorder.dispatch(&kernel(&other, probe::COPY, 64), &push, [1, 1, 1])));
    wrong(recorded(&mut |recorder| recorder.dispatch_indirect(&pipeline, &push, &scratch, 248)));
    wrong(recorded(&mut |recorder| recorder.copy(&scratch, 0, &foreign, 0, 16)));
    wrong(recorded(&mut |recorder| recorder.copy(&scratch, 0, &scratch, 8, 16)));
    wrong(recorded(&mut |recorder| recorder.copy(&scratch, 250, &scratch, 0, 16)));
    wrong(recorded(&mut |recorder| recorder.fill(&scratch, u64::MAX, 16, 0)));
    wrong(recorded(&mut |recorder| recorder.fill(&scratch, 0, 3, 0)));
    wrong(scratch.write(0, &[1]));
    wrong(device.upload(&[Piece { to: &scratch, at: 255, from: &[1, 2] }]));
    wrong(device.upload(&[Piece { to: &foreign, at: 0, from: &[1] }]));
    wrong(device.download(&scratch, 200, &mut [0; 100]));
    wrong(device.buffer(Pool::Scratch, 0).map(|_| ()));
    let seen = device.buffer(Pool::Readback, 16).unwrap();
    wrong(seen.set_word(2, 0));
    wrong(seen.set_word(16, 0));
    wrong(seen.write(10, &[0; 7]));
    let values = super::ramp(64);
    let from = floats(&device, Pool::Upload, &values);
    once(&device, &pipeline, 64, &from, &scratch, 64, 1.0);
    assert_eq!(super::values(&device, &scratch, 64), values);
}

/// Threads share a device: each compiles, allocates, uploads through the one staging ring, runs and reads back its own numbers.
pub fn threads() {
    let device = open(&Options { staged: Some(true), ..Options::default() });
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let device = device.clone();
            scope.spawn(move || {
                let pipeline = kernel(&device, probe::COPY, 64);
                for round in 0..8u8 {
                    let factor = f32::from(1 + thread * 8 + round);
                    let input = super::ramp(50_000 + usize::from(thread));
                    let from = floats(&device, Pool::Experts, &input);
                    let to = device.buffer(Pool::Scratch, from.bytes()).unwrap();
                    once(&device, &pipeline, 64, &from, &to, u32::try_from(input.len()).unwrap(), factor);
                    let expected: Vec<f32> = input.iter().map(|value| value * factor).collect();
                    assert!(values(&device, &to, input.len()) == expected, "thread {thread}, round {round}");
                }
            });
        }
    });
    let report = device.memory();
    assert!(report.waiting == 0 && report.pools.iter().all(|(_, held)| held.used == 0), "{report:?}");
}

/// A module that claims a capability which the device was not opened with: what the validation layer must notice.
pub fn invalid() {
    let device = open(&Options::default());
    let mut words = probe::WORDS.to_vec();
    // OpCapability Geometry, in front of the others.
    words.splice(5..5, [0x0002_0011, 2]);
    let spirv: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let _ = device.pipeline(&Kernel { name: "invalid", spirv: &spirv, constants: &[(0, 64)], push: 24, ..Kernel::default() });
}

/// Figures for a person, who runs this by hand (`drivers child --exact --nocapture scenario:figures`); nothing is asserted.
pub fn figures() {
    let started = Instant::now();
    let device = open(&Options::default());
    println!("{}: opened in {:?}, {}", device.facts().name, started.elapsed(), device.placement());
    let sum = floats(&device, Pool::Scratch, &[0.0; 64]);
    let pipeline = kernel(&device, probe::ADD, 64);
    let push = probe::push(sum.address(), sum.address(), 64, 1.0);
    for dispatches in [0, 1, 100, 1000] {
        let mut commands = Commands::record(&device, 0, |recorder| {
            for _ in 0..dispatches {
                recorder.dispatch(&pipeline, &push, [1, 1, 1])?;
                recorder.barrier();
            }
            Ok(())
        })
        .unwrap();
        let mut best = Duration::MAX;
        for _ in 0..200 {
            let started = Instant::now();
            commands.submit().unwrap();
            commands.wait().unwrap();
            best = best.min(started.elapsed());
        }
        println!("submit and wait, {dispatches} dependent dispatches: {best:?}");
    }
    for (name, staged, import) in [("mapped", false, false), ("staged", true, false), ("imported", true, true)] {
        let device = open(&Options { staged: Some(staged), import, ..Options::default() });
        let to = device.buffer(Pool::Weights, 512 * MIB).unwrap();
        let source = device.host_pages(512 * MIB).ok();
        let plain = vec![1u8; 512 * MIB as usize];
        let from = source.as_ref().map_or(plain.as_slice(), coli_vk::HostPages::bytes);
        for _ in 0..2 {
            let started = Instant::now();
            device.upload(&[Piece { to: &to, at: 0, from }]).unwrap();
            println!("512 MiB {name}: {:?}, {:?}", started.elapsed(), device.uploads());
        }
        let started = Instant::now();
        let block = device.buffer(Pool::Experts, 200 * MIB).unwrap();
        println!("a fresh block of {} MiB: {:?}", block.bytes() / MIB, started.elapsed());
    }
}
