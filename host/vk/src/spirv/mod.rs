//! A look at SPIR-V that comes from outside: what it may use is a list, and everything else is refused by name before a driver sees it.
//!
//! It is a guard against mistakes, not a whole validator and none against malice. What it does hold: memory outside of the module's own is
//! reached through the declared storage buffers alone, only those that may be written are written, and the sizes that a driver takes on
//! trust (workgroup, shared memory, ids) are small. Pure, and total: any bytes give an answer.

mod module;
mod words;

use std::fmt;
use std::ops::Range;

use module::Reader;
use words::instructions;

/// Bytes of a module at most.
const BYTES_MAX: usize = 1 << 20;
/// Ids of a module at most; a driver makes a table of them.
const IDS_MAX: u32 = 1 << 20;
/// Bytes of a module's variables outside of buffers at most, workgroup's apart.
const PRIVATE_MAX: u64 = 64 << 10;

/// What a module is for.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// Storage buffers that it is given: bindings 0 and up of set 0.
    pub buffers: u32,
    /// Those of them that it may write.
    pub written: Range<u32>,
    /// Specialization constants that it is given: numbers and bits.
    pub constants: &'a [(u32, u32)],
}

/// What a module asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// In the order of the module.
    pub capabilities: Vec<Capability>,
    /// Invocations of a workgroup, with the constants that were given.
    pub workgroup: [u32; 3],
    /// Bytes of shared memory, the same.
    pub shared_bytes: u64,
    /// The module's words, in this machine's order.
    pub words: Vec<u32>,
}

/// What a module may be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Shaders.
    Shader,
    /// Arithmetic of f16.
    Float16,
    /// Arithmetic of 16-bit integers.
    Int16,
    /// Arithmetic of 8-bit integers.
    Int8,
    /// 16-bit numbers in buffers.
    Storage16,
    /// 8-bit numbers in buffers.
    Storage8,
    /// Subgroups.
    Subgroup,
    /// Votes of a subgroup.
    Vote,
    /// Sums and the like over a subgroup.
    Arithmetic,
    /// Votes as bits.
    Ballot,
    /// Numbers from other lanes.
    Shuffle,
}

impl Capability {
    /// All of them, with SPIR-V's number and name.
    const LIST: [(Self, u32, &'static str); 11] = [
        (Self::Shader, 1, "Shader"),
        (Self::Float16, 9, "Float16"),
        (Self::Int16, 22, "Int16"),
        (Self::Int8, 39, "Int8"),
        (Self::Storage16, 4433, "StorageBuffer16BitAccess"),
        (Self::Storage8, 4448, "StorageBuffer8BitAccess"),
        (Self::Subgroup, 61, "GroupNonUniform"),
        (Self::Vote, 62, "GroupNonUniformVote"),
        (Self::Arithmetic, 63, "GroupNonUniformArithmetic"),
        (Self::Ballot, 64, "GroupNonUniformBallot"),
        (Self::Shuffle, 65, "GroupNonUniformShuffle"),
    ];

    fn of(number: u32) -> Option<Self> {
        Self::LIST.iter().find(|(_, listed, _)| *listed == number).map(|(capability, ..)| *capability)
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::LIST.iter().find(|(capability, ..)| capability == self);
        f.write_str(found.map_or("", |(.., name)| name))
    }
}

/// Checks a module, whose words are little-endian. An error is one line that names what is refused.
pub fn check(bytes: &[u8], wanted: &Wanted<'_>) -> Result<Checked, String> {
    let words = words::read(bytes)?;
    let mut reader = Reader::new(wanted);
    for instruction in instructions(&words) {
        reader.take(&instruction?)?;
    }
    let found = reader.finish()?;
    Ok(Checked { capabilities: found.capabilities, workgroup: found.workgroup, shared_bytes: found.shared_bytes, words })
}

#[cfg(test)]
mod tests;
