//! Memory of a real driver: blocks, limits, first touches, late frees, imports and the window's probe.

use coli_vk::memory::{GIB, MIB, Pool};
use coli_vk::{Buffer, Commands, Device, Fault, Options, Piece, Probe};

use super::{bytes, floats, kernel, once, open, ramp, values};
use crate::probe;

fn held(device: &Device, pool: Pool) -> coli_vk::memory::pools::Held {
    device.memory().pools.iter().find(|(of, _)| *of == pool).unwrap().1
}

/// Many buffers in few blocks, each with its own bytes; everything comes back.
pub fn memory() {
    let device = open(&Options::default());
    let small: Vec<(u8, Buffer)> = (0..=255).map(|at| (at, device.buffer(Pool::Weights, 1000 + u64::from(at)).unwrap())).collect();
    let contents: Vec<Vec<u8>> = small.iter().map(|(at, buffer)| vec![*at; usize::try_from(buffer.bytes()).unwrap()]).collect();
    let pieces: Vec<Piece<'_>> = small.iter().zip(&contents).map(|((_, to), from)| Piece { to, at: 0, from }).collect();
    device.upload(&pieces).unwrap();
    assert_eq!(held(&device, Pool::Weights).blocks, 1, "one allocation for all of them");
    for ((_, buffer), content) in small.iter().zip(&contents) {
        let mut back = vec![0; content.len()];
        device.download(buffer, 0, &mut back).unwrap();
        assert!(back == *content && buffer.address() % 256 == 0);
    }
    let large = device.buffer(Pool::Experts, 300 * MIB).unwrap();
    assert_eq!((held(&device, Pool::Experts).blocks, held(&device, Pool::Experts).held), (1, 300 * MIB));
    drop((small, large));
    let report = device.memory();
    assert!(
        report.pools.iter().filter(|(pool, _)| *pool != Pool::Readback).all(|(_, held)| held.blocks == 0 && held.used == 0),
        "{report:?}"
    );
    assert_eq!((held(&device, Pool::Readback).blocks, report.waiting), (0, 0));
    let most = device.facts().limits.allocation.min(device.facts().limits.buffer);
    assert!(matches!(device.buffer(Pool::Scratch, most + 1), Err(Fault::Memory { .. })));
}

/// A limit is an error that leaves everything usable.
pub fn limit() {
    let device = open(&Options { limit: Some(32 * MIB), ..Options::default() });
    let mut taken: Vec<Buffer> = std::iter::from_fn(|| device.buffer(Pool::Experts, MIB).ok()).collect();
    let counted = device.memory().counted;
    assert!(counted <= 32 * MIB && taken.len() >= 28, "{} buffers, {counted} bytes", taken.len());
    let fault = device.buffer(Pool::Experts, 8 * MIB).err().unwrap();
    assert!(fault.is_memory() && fault.to_string().contains("experts"), "{fault}");
    drop(taken.split_off(2));
    // What is left still works.
    let input = ramp(1000);
    for buffer in &taken {
        device.upload(&[Piece { to: buffer, at: 0, from: &bytes(&input) }]).unwrap();
    }
    let to = device.buffer(Pool::Scratch, 4000).unwrap();
    once(&device, &kernel(&device, probe::COPY, 64), 64, &taken[1], &to, 1000, 2.0);
    assert_eq!(values(&device, &to, 1000), input.iter().map(|value| value * 2.0).collect::<Vec<_>>());
    drop((taken, to));
    // A pool's own limit.
    device.set_limit(Pool::Kv, Some(MIB));
    assert!(device.buffer(Pool::Kv, 2 * MIB).is_err_and(|fault| fault.is_memory()));
    device.set_limit(Pool::Kv, None);
    assert!(device.buffer(Pool::Kv, 2 * MIB).is_ok());
}

/// A fresh block was filled by the device, once.
pub fn fresh() {
    let device = open(&Options::default());
    let buffers: Vec<Buffer> = (0..4).map(|_| device.buffer(Pool::Scratch, MIB).unwrap()).collect();
    assert_eq!(device.memory().filled, 1, "one block, one fill");
    for buffer in &buffers {
        assert!(values(&device, buffer, MIB as usize / 4).iter().all(|value| value.to_bits() == 0));
    }
    let bare = open(&Options { fill: false, ..Options::default() });
    let _buffer = bare.buffer(Pool::Scratch, MIB).unwrap();
    assert_eq!(bare.memory().filled, 0);
}

/// Memory that a submit may still read goes back behind it.
pub fn dropped() {
    let device = open(&Options::default());
    let pipeline = kernel(&device, probe::COPY, 64);
    let count = 1 << 20;
    let input = ramp(count);
    let to = device.buffer(Pool::Kv, count as u64 * 4).unwrap();
    let from = floats(&device, Pool::Weights, &input);
    let push = probe::push(from.address(), to.address(), 1 << 20, 5.0);
    // On purpose without `keep`: the address is all that the commands have.
    let groups = [(1 << 20) / 64, 1, 1];
    let mut commands = Commands::record(&device, 0, |recorder| recorder.dispatch(&pipeline, &push, groups)).unwrap();
    commands.submit().unwrap();
    drop(from);
    // What is allocated now may not lie where the submit still reads.
    let next = floats(&device, Pool::Weights, &vec![0.0; count]);
    commands.wait().unwrap();
    assert!(values(&device, &to, count) == input.iter().map(|value| value * 5.0).collect::<Vec<_>>());
    assert_eq!(device.memory().waiting, 0);
    drop(next);
    assert_eq!(held(&device, Pool::Weights).held, 0);
}

/// The host's pages: as a buffer, and as the source of staged uploads.
pub fn import() {
    let device = open(&Options { staged: Some(true), ..Options::default() });
    assert!(device.facts().features.host_import, "this driver imports");
    let count = 2 * MIB as usize / 4;
    let input = ramp(count);
    let mut pages = device.host_pages(count as u64 * 4).unwrap();
    pages.bytes_mut().copy_from_slice(&bytes(&input));
    let to = device.buffer(Pool::Scratch, count as u64 * 4).unwrap();
    let pipeline = kernel(&device, probe::COPY, 64);
    let push = probe::push(pages.address(), to.address(), u32::try_from(count).unwrap(), 2.0);
    let mut commands = Commands::record(&device, 0, |recorder| {
        recorder.keep(&pages);
        recorder.dispatch(&pipeline, &push, [u32::try_from(count / 64).unwrap(), 1, 1])
    })
    .unwrap();
    commands.submit().unwrap();
    commands.wait().unwrap();
    assert!(values(&device, &to, count) == input.iter().map(|value| value * 2.0).collect::<Vec<_>>(), "read in place");
    // Page-aligned bytes are copied by the device; an odd tail is staged.
    let weights = device.buffer(Pool::Weights, 2 * MIB).unwrap();
    let part = &pages.bytes()[..2 * MIB as usize - 100];
    device.upload(&[Piece { to: &weights, at: 0, from: part }]).unwrap();
    let report = device.uploads();
    assert_eq!((report.imported, report.staged, report.refused), (2 * MIB - 4096, 4096 - 100, 0));
    assert!(values(&device, &weights, count - 25) == input[..count - 25]);
    // With imports off the same bytes go another way.
    let plain = open(&Options { staged: Some(true), import: false, ..Options::default() });
    assert!(plain.host_pages(4096).is_err());
    let again = plain.buffer(Pool::Weights, 2 * MIB).unwrap();
    plain.upload(&[Piece { to: &again, at: 0, from: part }]).unwrap();
    assert_eq!((plain.uploads().imported, plain.uploads().staged), (0, 2 * MIB - 100));
    assert!(values(&plain, &again, count - 25) == input[..count - 25]);
    drop((commands, pages));
    assert_eq!(device.memory().waiting, 0);
}

/// The window is asked, and a driver that gives less than was asked is staged.
pub fn probe() {
    let enough = open(&Options { probe: Probe::Ask(GIB + 5), ..Options::default() });
    assert!(!enough.placement().staged && enough.placement().reason.contains("gave the 1 GiB"), "{}", enough.placement());
    let short = open(&Options { probe: Probe::Answer { asked: 72 * GIB, given: 39 * GIB }, ..Options::default() });
    assert!(short.placement().staged && short.placement().reason.contains("39 of the 72 GiB"), "{}", short.placement());
    assert!(!floats(&short, Pool::Weights, &[1.0]).is_mapped());
    let settled = open(&Options { staged: Some(false), ..Options::default() });
    assert_eq!(settled.placement().reason, "mapped, as asked");
}

/// A driver that really refuses: SwiftShader has no gibibyte in one piece.
pub fn probe_refused() {
    let refused = open(&Options { probe: Probe::Ask(2 * GIB), ..Options::default() });
    assert!(refused.placement().staged && refused.placement().reason.contains("0 of the 2 GiB"), "{}", refused.placement());
    let input = ramp(1000);
    assert_eq!(values(&refused, &floats(&refused, Pool::Weights, &input), 1000), input);
    assert_eq!(refused.uploads().staged, 4000);
}
