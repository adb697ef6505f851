//! What a set of kernels looks like as a file, for who writes it and who reads it.
//!
//! ```text
//! coli kernels 1             the format's number
//! sources <64 hex digits>    SHA-256 of all GLSL texts: what ties a set to a program
//! contents <64 hex digits>   SHA-256 of the body
//! modules <number>
//! bytes <number>             of the body
//!                            an empty line; then the body, packed with zlib
//! ```
//!
//! The body has the modules in the order of their names: length of the name and of the SPIR-V (32 bits each, little-endian), name, SPIR-V.

use coli_shaders::device::Module;
use sha2::{Digest as _, Sha256};

/// The format's number.
pub const FORMAT: u32 = 1;

/// What the first line begins with.
pub const MAGIC: &str = "coli kernels ";

/// What the names of the other lines of the head are, in order.
pub const FIELDS: [&str; 4] = ["sources", "contents", "modules", "bytes"];

/// Bytes of a packed set, at most. It is embedded in the program, which must stay small.
pub const PACKED_MAX: u64 = 12_000_000;

/// A SHA-256 hash.
pub type Hash = [u8; 32];

/// The hash of these bytes.
pub fn hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// The hash of the texts of these modules, with their names.
pub fn hash_of_sources(modules: &[Module]) -> Hash {
    let mut hasher = Sha256::new();
    for part in modules.iter().flat_map(|module| [&module.name, &module.text]) {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}
