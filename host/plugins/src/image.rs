//! A look at a library file before the system's loader maps it.
//!
//! The loader maps segments without comparing them with the file's length, so a file that was cut short would end the process by a signal
//! at the first touch of a missing page. It also reports a library for another processor as a file that does not exist. And it maps code
//! that was never written, as a download or a copy that was broken off leaves it in a file of full length: zeros, which crash when they
//! are run, and that may be long after the library has opened.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

const HEADER: usize = 64;
const SEGMENT: usize = 56;
const SECTION: usize = 64;
/// A section whose bytes are not in the file.
const NO_BITS: u32 = 8;
/// The flag of a section that is code.
const CODE: u64 = 4;
/// What file systems leave out is a multiple of this, and no code has so many zeros.
const HOLE: usize = 4096;
const SHARED: u16 = 3;
const CLASS_64: u8 = 2;

/// Checks the library at `path`. Where the system's libraries are not 64-bit ELF files, nothing is checked.
pub(crate) fn check(path: &Path) -> Result<(), String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let facts = std::fs::metadata(path).map_err(unreadable)?;
    if !facts.is_file() {
        return Err("is not a file".into());
    }
    if cfg!(all(unix, not(target_vendor = "apple"), target_pointer_width = "64")) {
        check_elf(&mut File::open(path).map_err(unreadable)?, facts.len())?;
    }
    Ok(())
}

fn check_elf(file: &mut (impl Read + Seek), len: u64) -> Result<(), String> {
    let header = read_at(file, 0, HEADER, len).map_err(|_| "is not a shared library".to_string())?;
    if !header.starts_with(b"\x7fELF") {
        return Err("is not a shared library".into());
    }
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    if header[4] != CLASS_64 || header[5] != order || machine().is_some_and(|machine| half(&header, 18) != machine) {
        return Err("is built for another kind of processor".into());
    }
    if half(&header, 16) != SHARED {
        return Err("is not a shared library".into());
    }
    let (segments, count) = (long(&header, 32), usize::from(half(&header, 56)));
    if usize::from(half(&header, 54)) != SEGMENT || count == 0 {
        return Err("is not a shared library".into());
    }
    for segment in read_at(file, segments, count * SEGMENT, len)?.chunks_exact(SEGMENT) {
        within(long(segment, 8), long(segment, 32), len)?;
    }
    // A library may come without section headers. Linkers write them last, so they tell of a cut that only lost what is not mapped.
    let (sections, count) = (long(&header, 40), usize::from(half(&header, 60)));
    if sections == 0 || count == 0 {
        return Ok(());
    }
    if usize::from(half(&header, 58)) != SECTION {
        return Err("is not a shared library".into());
    }
    read_at(file, sections, count * SECTION, len)?.chunks_exact(SECTION).try_for_each(|section| check_section(file, section, len))
}

fn check_section(file: &mut (impl Read + Seek), section: &[u8], len: u64) -> Result<(), String> {
    let (kind, flags, start, size) = (word(section, 4), long(section, 8), long(section, 24), long(section, 32));
    if kind == 0 || kind == NO_BITS {
        return Ok(());
    }
    within(start, size, len)?;
    if flags & CODE == 0 {
        return Ok(());
    }
    // Within the file, and holes lie at multiples of their size.
    let end = start + size;
    let mut at = start.next_multiple_of(HOLE as u64);
    while at.checked_add(HOLE as u64).is_some_and(|next| next <= end) {
        if read_at(file, at, HOLE, len)?.iter().all(|byte| *byte == 0) {
            return Err(format!("was not written whole: its code has {HOLE} zeros at byte {at}"));
        }
        at += HOLE as u64;
    }
    Ok(())
}

/// The processor's code in an ELF header, where it is known here.
fn machine() -> Option<u16> {
    match std::env::consts::ARCH {
        "x86_64" => Some(62),
        "aarch64" => Some(183),
        "riscv64" => Some(243),
        _ => None,
    }
}

fn within(offset: u64, size: u64, len: u64) -> Result<(), String> {
    match offset.checked_add(size) {
        Some(end) if end <= len => Ok(()),
        _ => Err(format!("is cut short: it has {len} bytes and refers to what lies beyond them")),
    }
}

fn read_at(file: &mut (impl Read + Seek), offset: u64, size: usize, len: u64) -> Result<Vec<u8>, String> {
    within(offset, size as u64, len)?;
    let mut bytes = vec![0; size];
    file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(&mut bytes)).map_err(|error| format!("cannot be read: {error}"))?;
    Ok(bytes)
}

/// The `N` bytes at a place that the caller knows to lie inside.
fn bytes<const N: usize>(from: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|i| from[at + i])
}

fn half(from: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(bytes(from, at))
}

fn word(from: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes(from, at))
}

fn long(from: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes(from, at))
}

#[cfg(test)]
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn verdict(bytes: &[u8]) -> Result<(), String> {
        check_elf(&mut Cursor::new(bytes), bytes.len() as u64)
    }

    /// This test's own executable, which is laid out like a shared library.
    fn own() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn a_whole_file_passes_and_every_cut_of_it_is_refused() {
        let own = own();
        assert_eq!(verdict(&own), Ok(()));
        for len in [64, 65, 200, 4096, own.len() / 2, own.len() - 1] {
            assert!(verdict(&own[..len]).unwrap_err().contains("cut short"), "{len}");
        }
        for len in [0, 4, 63] {
            assert!(verdict(&own[..len]).unwrap_err().contains("not a shared library"), "{len}");
        }
    }

    #[test]
    fn another_class_order_machine_or_kind_is_named() {
        for (at, value, text) in
            [(4, 1, "processor"), (5, 9, "processor"), (18, 0xee, "processor"), (16, 1, "not a shared"), (0, 0, "not a")]
        {
            let mut bytes = own();
            bytes[at] = value;
            assert!(verdict(&bytes).unwrap_err().contains(text), "{at}");
        }
    }

    /// Where the headers of the sections that are code begin.
    fn code(bytes: &[u8]) -> Vec<usize> {
        let (start, count) = (long(bytes, 40) as usize, usize::from(half(bytes, 60)));
        let headers = (0..count).map(|index| start + index * SECTION);
        headers.filter(|at| word(bytes, at + 4) != NO_BITS && long(bytes, at + 8) & CODE != 0).collect()
    }

    #[test]
    fn code_that_was_never_written_is_refused() {
        let own = own();
        let largest = code(&own).into_iter().max_by_key(|at| long(&own, at + 32)).unwrap();
        let start = (long(&own, largest + 24) as usize).next_multiple_of(HOLE);
        for hole in [start, start + 3 * HOLE] {
            let mut bytes = own.clone();
            bytes[hole..hole + HOLE].fill(0);
            assert!(verdict(&bytes).unwrap_err().contains(&format!("its code has 4096 zeros at byte {hole}")));
            bytes[hole + 7] = 1;
            assert_eq!(verdict(&bytes), Ok(()));
        }
    }

    #[test]
    fn a_section_that_lies_outside_of_the_file_is_refused() {
        let own = own();
        for (field, value) in [(24, u64::MAX), (24, own.len() as u64), (32, u64::MAX), (32, own.len() as u64)] {
            let mut bytes = own.clone();
            let at = code(&own)[0] + field;
            bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
            assert!(verdict(&bytes).unwrap_err().contains("cut short"), "{field} {value}");
        }
        let mut bytes = own;
        bytes[58] = 3;
        assert!(verdict(&bytes).unwrap_err().contains("not a shared library"));
    }

    #[test]
    fn offsets_that_overflow_are_refused() {
        for at in [32, 40] {
            let mut bytes = own();
            bytes[at..at + 8].fill(0xff);
            assert!(verdict(&bytes).unwrap_err().contains("cut short"), "{at}");
        }
    }
}
