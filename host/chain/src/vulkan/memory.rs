//! The buffers that every frame of an executor uses.

use coli_base::Result;
use coli_vk::memory::Pool;
use coli_vk::{Buffer, Device, Piece};

use super::frame::Frame;
use super::words::{FAULT_WORDS, NO_FAULT};

/// Buffers that every frame uses; they grow, and then recordings are made anew.
pub(super) struct Memory {
    pub step: Buffer,
    pub staging: Buffer,
    pub scratch: Buffer,
    pub readback: Buffer,
    /// The step's words as they were written last.
    pub host: Vec<u32>,
    /// Room for addresses of pages, in words.
    pub pages: usize,
    /// The addresses that are on the device.
    pub on_device: Vec<u32>,
}

/// Bytes of each buffer before a frame asks for more.
const FIRST_BYTES: u64 = 4096;
/// Words of addresses of pages before a step has more.
const FIRST_PAGES: usize = 64;

impl Memory {
    pub fn new(device: &Device) -> Result<Self> {
        let first = |pool| device.buffer(pool, FIRST_BYTES);
        Ok(Self {
            step: first(Pool::Scratch)?,
            staging: first(Pool::Upload)?,
            scratch: first(Pool::Scratch)?,
            readback: first(Pool::Readback)?,
            host: vec![],
            pages: FIRST_PAGES,
            on_device: vec![],
        })
    }

    /// Makes room for so many words of addresses; `true` where every recording has to be made anew.
    pub fn grow_pages(&mut self, words: usize) -> bool {
        let grows = words > self.pages;
        if grows {
            self.pages = words.next_power_of_two();
            self.on_device.clear();
        }
        grows
    }

    /// Makes room for a frame; `true` where recordings name buffers that are gone.
    pub fn make_room(&mut self, device: &Device, frame: &Frame) -> Result<bool> {
        let words = frame.words.front.end;
        let bytes = words as u64 * 4;
        let step = grow(device, &mut self.step, Pool::Scratch, bytes)?;
        if step {
            self.on_device.clear();
        }
        let others = [
            grow(device, &mut self.staging, Pool::Upload, bytes)?,
            grow(device, &mut self.scratch, Pool::Scratch, frame.scratch_bytes)?,
            grow(device, &mut self.readback, Pool::Readback, frame.readback_bytes())?,
        ];
        if self.host.len() < words {
            self.host.resize(words, 0);
        }
        self.host[..FAULT_WORDS].copy_from_slice(&[NO_FAULT, 0, 0, 0]);
        Ok(step || others.contains(&true))
    }

    /// Brings the pages' addresses up to date, which most steps leave as they are.
    pub fn put_pages(&mut self, device: &Device, words: &[u32]) -> Result<()> {
        let same = self.on_device.iter().zip(words).take_while(|(a, b)| a == b).count();
        if same < words.len() {
            let at = (FAULT_WORDS + same) as u64 * 4;
            device.upload(&[Piece { to: &self.step, at, from: bytemuck::cast_slice(&words[same..]) }])?;
            self.on_device.truncate(same);
            self.on_device.extend_from_slice(&words[same..]);
        }
        Ok(())
    }
}

fn grow(device: &Device, buffer: &mut Buffer, pool: Pool, bytes: u64) -> Result<bool> {
    let grows = bytes > buffer.bytes();
    if grows {
        *buffer = device.buffer(pool, bytes.next_power_of_two())?;
    }
    Ok(grows)
}
