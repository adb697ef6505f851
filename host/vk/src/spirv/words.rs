//! A module as words, and the words as instructions.

use super::{BYTES_MAX, IDS_MAX};

/// The first word of every module.
const MAGIC: u32 = 0x0723_0203;
/// Versions that Vulkan 1.2 takes.
const VERSIONS: std::ops::RangeInclusive<u32> = 0x0001_0000..=0x0001_0500;
/// Words of the header.
const HEADER: usize = 5;

/// An instruction: its number, and the words after the first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Instruction<'a> {
    pub op: u16,
    pub operands: &'a [u32],
}

impl Instruction<'_> {
    /// An operand.
    pub fn word(&self, at: usize) -> Result<u32, String> {
        self.operands.get(at).copied().ok_or_else(|| format!("its instruction {} is too short", self.op))
    }

    /// A text that begins at an operand.
    pub fn text(&self, at: usize) -> String {
        let bytes = self.operands.iter().skip(at).flat_map(|word| word.to_le_bytes());
        let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).take(100).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The words of a module whose header is right.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<u32>, String> {
    if bytes.len() > BYTES_MAX {
        return Err(format!("it has {} bytes, and at most {BYTES_MAX} are taken", bytes.len()));
    }
    if !bytes.len().is_multiple_of(4) {
        return Err("its length is no multiple of 4".into());
    }
    let words: Vec<u32> = bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
    let [MAGIC, version, _, bound, schema, ..] = words[..] else { return Err("it does not begin as SPIR-V does".into()) };
    if !VERSIONS.contains(&version) || version & 0xff != 0 {
        return Err(format!("it is of version {}.{}, and 1.0 to 1.5 are taken", version >> 16 & 0xff, version >> 8 & 0xff));
    }
    if bound == 0 || bound > IDS_MAX || schema != 0 {
        return Err(format!("its header states {bound} ids and schema {schema}"));
    }
    Ok(words)
}

/// The instructions of a module, up to one that does not fit.
pub(super) fn instructions(words: &[u32]) -> impl Iterator<Item = Result<Instruction<'_>, String>> {
    let mut rest = words.get(HEADER..).unwrap_or_default();
    std::iter::from_fn(move || {
        let first = *rest.first()?;
        let len = (first >> 16) as usize;
        let Some((whole, after)) = rest.split_at_checked(len).filter(|_| len > 0) else {
            let at = words.len() - rest.len();
            rest = &[];
            return Some(Err(format!("its instruction at word {at} has {len} words, which do not fit")));
        };
        rest = after;
        Some(Ok(Instruction { op: (first & 0xffff) as u16, operands: &whole[1..] }))
    })
}
