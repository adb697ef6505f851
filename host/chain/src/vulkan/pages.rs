//! Pages of states in device memory. What is asked of them is put down, and done before the next frame ([`Jobs::run`]).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coli_base::Result;
use coli_vk::memory::Pool;
use coli_vk::{Buffer, Commands, Device, Piece};
use half::f16;

use crate::state::{Form, Len, PageStore, word_offsets};

/// What is to be done, in order.
#[derive(Clone, Default)]
pub(crate) struct Jobs(Arc<Mutex<Vec<Job>>>);

enum Job {
    Fill { to: Buffer, at: u64, bytes: u64, word: u32 },
    Copy { from: Buffer, to: Buffer, at: u64, bytes: u64 },
    Write { to: Buffer, at: u64, bytes: Vec<u8> },
}

impl Jobs {
    fn list(&self) -> MutexGuard<'_, Vec<Job>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does all that was put down.
    pub fn run(&self, device: &Device) -> Result<()> {
        let jobs = std::mem::take(&mut *self.list());
        let mut rest = &jobs[..];
        while !rest.is_empty() {
            // Writings go through an upload, between the commands before and after them.
            let commands = rest.iter().position(|job| matches!(job, Job::Write { .. })).unwrap_or(rest.len());
            let (now, later) = rest.split_at(commands);
            submit(device, now)?;
            let writes = later.iter().position(|job| !matches!(job, Job::Write { .. })).unwrap_or(later.len());
            let (now, later) = later.split_at(writes);
            let piece = |job| if let &Job::Write { ref to, at, ref bytes } = job { Some(Piece { to, at, from: bytes }) } else { None };
            let pieces: Vec<Piece<'_>> = now.iter().filter_map(piece).collect();
            if !pieces.is_empty() {
                device.upload(&pieces)?;
            }
            rest = later;
        }
        Ok(())
    }
}

fn submit(device: &Device, jobs: &[Job]) -> Result<()> {
    if jobs.is_empty() {
        return Ok(());
    }
    let mut commands = Commands::record(device, 0, |recorder| {
        for job in jobs {
            match job {
                Job::Fill { to, at, bytes, word } => recorder.fill(to, *at, *bytes, *word)?,
                Job::Copy { from, to, at, bytes } => recorder.copy(from, *at, to, *at, *bytes)?,
                Job::Write { .. } => {}
            }
            recorder.barrier_all();
        }
        Ok(())
    })?;
    commands.submit()?;
    Ok(commands.wait()?)
}

/// A pool's pages on a device: each a buffer with all arenas.
pub(super) struct DevicePages {
    device: Device,
    jobs: Jobs,
    lens: Vec<Len>,
    /// The first word of each arena.
    words: Vec<u64>,
    bytes: u64,
    pages: Vec<Buffer>,
}

impl std::fmt::Debug for DevicePages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DevicePages").field("pages", &self.pages.len()).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl DevicePages {
    pub fn new(device: Device, jobs: Jobs, lens: &[Len]) -> Self {
        let (words, end) = word_offsets(lens);
        Self { device, jobs, lens: lens.to_vec(), words, bytes: (end * 4).max(4), pages: vec![] }
    }

    /// Where a number of an arena lies, in bytes of a page.
    fn at(&self, arena: usize, number: usize) -> u64 {
        let bytes = if self.lens[arena].form == Form::Half { 2 } else { 4 };
        self.words[arena] * 4 + number as u64 * bytes
    }

    fn end(&self, arena: usize, number: usize) -> u64 {
        self.at(arena, number).next_multiple_of(4)
    }
}

impl PageStore for DevicePages {
    fn make(&mut self) -> Result<()> {
        self.pages.push(self.device.buffer(Pool::Kv, self.bytes)?);
        Ok(())
    }

    fn fill(&mut self, page: usize, with: f32) {
        let mut list = self.jobs.list();
        for (arena, len) in self.lens.iter().enumerate() {
            let half = u32::from(f16::from_f32(with).to_bits());
            let word = if len.form == Form::Half { half << 16 | half } else { with.to_bits() };
            let (at, end) = (self.at(arena, 0), self.end(arena, len.numbers));
            if end > at {
                list.push(Job::Fill { to: self.pages[page].clone(), at, bytes: end - at, word });
            }
        }
    }

    fn copy(&mut self, arena: usize, from: usize, to: usize, numbers: usize) {
        let at = self.at(arena, 0);
        // A half too many in the last word is one that nobody has written yet.
        let bytes = self.end(arena, numbers) - at;
        let (from, to) = (self.pages[from].clone(), self.pages[to].clone());
        self.jobs.list().push(Job::Copy { from, to, at, bytes });
    }

    fn put(&mut self, arena: usize, page: usize, at: usize, numbers: &[f32]) {
        let bytes = if self.lens[arena].form == Form::Half {
            numbers.iter().flat_map(|number| f16::from_f32(*number).to_le_bytes()).collect()
        } else {
            numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
        };
        let job = Job::Write { to: self.pages[page].clone(), at: self.at(arena, at), bytes };
        self.jobs.list().push(job);
    }

    fn read(&self, arena: usize, page: usize, at: usize, numbers: usize) -> Result<Vec<f32>> {
        self.jobs.run(&self.device)?;
        let (start, end) = (self.at(arena, at), self.at(arena, at + numbers));
        let mut bytes = vec![0; (end - start) as usize];
        self.device.download(&self.pages[page], start, &mut bytes)?;
        Ok(if self.lens[arena].form == Form::Half {
            bytes.chunks_exact(2).map(|half| f16::from_le_bytes([half[0], half[1]]).to_f32()).collect()
        } else {
            bytes.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
        })
    }

    fn address(&self, page: usize) -> u64 {
        self.pages[page].address()
    }
}
