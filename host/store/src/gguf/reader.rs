//! Numbers and texts of a GGUF header, one after the other. What a file claims is held against what is left of it before memory is taken.

use std::fmt::Display;

use coli_base::{Error, Result};

use crate::file::OpenFile;

/// A header is metadata and a list of tensors; those of published models, whose tokenizer is the largest part, take less than a fifth.
pub(super) const HEADER_MAX: u64 = 128 << 20;

/// Bytes that are read from the file at a time.
const WINDOW: u64 = 64 << 10;

/// A cursor over the header of a file.
pub(super) struct Reader<'a> {
    file: &'a OpenFile,
    /// Of the next byte, from the start of the file.
    at: u64,
    window: Vec<u8>,
    /// Of the window's first byte.
    start: u64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(file: &'a OpenFile) -> Self {
        Self { file, at: 0, window: Vec::new(), start: 0 }
    }

    /// Where the next byte lies in the file.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Refuses a claim of `count` things of at least `each` bytes that do not fit into what is left of the header.
    pub(super) fn check(&self, count: u64, each: u64, what: impl Display) -> Result<()> {
        let left = self.file.len.min(HEADER_MAX).saturating_sub(self.at);
        if count.checked_mul(each).is_some_and(|bytes| bytes <= left) {
            return Ok(());
        }
        let at = self.at;
        Err(Error::refused(if self.file.len > HEADER_MAX {
            format!("{what} at byte {at} go beyond the {HEADER_MAX} bytes that a header may have")
        } else {
            format!("truncated or damaged: {what} at byte {at} do not fit into the {left} bytes that follow")
        }))
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A byte that is 0 or 1.
    pub(super) fn bool(&mut self) -> Result<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Error::refused(format!("{other} at byte {} is no truth value", self.at - 1))),
        }
    }

    /// A length and so many bytes of text.
    pub(super) fn text(&mut self) -> Result<String> {
        let len = self.u64()?;
        self.check(len, 1, format_args!("the {len} bytes of a text"))?;
        let at = self.at;
        // Not more than a header has.
        let mut bytes = vec![0; len as usize];
        self.fill(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| Error::refused(format!("the text at byte {at} is not UTF-8")))
    }

    /// The next bytes; little-endian, where they are a number.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.check(1, N as u64, format_args!("the {N} bytes of a number"))?;
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// Fills `out`, which was checked to fit into what is left.
    fn fill(&mut self, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            let behind = (self.at - self.start) as usize;
            let Some(have) = self.window.get(behind..).filter(|have| !have.is_empty()) else {
                self.advance()?;
                continue;
            };
            let count = have.len().min(out.len());
            let (now, later) = out.split_at_mut(count);
            now.copy_from_slice(&have[..count]);
            self.at += count as u64;
            out = later;
        }
        Ok(())
    }

    /// The window over the bytes from the cursor on.
    fn advance(&mut self) -> Result<()> {
        self.start = self.at;
        self.window.resize(WINDOW.min(self.file.len - self.at) as usize, 0);
        self.file.read_at(&mut self.window, self.at).map_err(|error| Error::run(format!("reading the header: {error}")))
    }
}
