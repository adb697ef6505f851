//! Writes a folder of safetensors anew, with its matrices in other formats.
//!
//! In order: [`Roles`] says what the model does with each tensor, from its plugin's description alone; [`Conversion::plan`] knows from
//! headers every byte's place in every file to come; [`Conversion::open`] takes the target folder, new or unfinished; [`Folder::run`]
//! writes.
//!
//! What is written: the stored tensors under their names. An encoded tensor `name` is its rows of values, `U8 [.., bytes of a row]`, and
//! `name.qs` its rows of scales, `F32 [.., scales of a row]`. The file's `__metadata__` says what they are: `coli.formats` is a JSON object
//! from names to format names, `coli.shapes` one from names to dimensions. Tensors of float formats are plain ones.
//!
//! What holds at every moment, and so after a kill: a file that has its own name is whole, was read back, and is on the disk. All else has
//! a name of a temporary file. The state file is there from before the first byte until after the last one; `config.json`, without which no
//! folder is a model, comes last. The folder of an unfinished conversion is locked by the process that works in it.

mod disk;
mod folder;
mod layout;
mod roles;
mod shard;
mod side;
mod state;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use coli_base::{Error, Result};
use coli_plugin_api::describe::Container;
use coli_shaders::formats::Format;

pub use folder::{Event, Folder};
pub use roles::{Role, Roles};
pub use state::STATE;

use crate::checkpoint::{Checkpoint, has_twos_note};
use crate::packed::{self, Stated, Stored};
use crate::{header, quantization};
use layout::Shard;
use side::Side;

/// What becomes of a kind of tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// They are copied.
    Keep,
    /// They are encoded in this format.
    As(Format),
}

impl Choice {
    /// The formats that can be chosen.
    pub fn formats() -> impl Iterator<Item = Format> {
        // Rows that share scales would tie a row's bytes to those of its neighbours; nothing that we write has them.
        Format::ALL.iter().copied().filter(|format| format.is_written() && format.scale_rows() == 1)
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let name = if text == "int8" { "int8-row" } else { text };
        match Self::formats().find(|format| format.name() == name) {
            _ if name == "keep" => Ok(Self::Keep),
            Some(format) => Ok(Self::As(format)),
            None => {
                let names: Vec<&str> = Self::formats().map(Format::name).collect();
                Err(format!("there is keep, int8 (which is int8-row), {}", names.join(", ")))
            }
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keep => "keep",
            Self::As(format) => format.name(),
        })
    }
}

/// What becomes of which tensors. All others are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Matrices of experts.
    pub experts: Choice,
    /// All other matrices, embedding and output head among them.
    pub dense: Choice,
}

/// Tensors of one kind, before and after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figure {
    /// How many.
    pub tensors: u64,
    /// Their bytes in the source.
    pub before: u64,
    /// Their bytes in the target, scales included.
    pub after: u64,
}

impl Figure {
    fn add(&mut self, before: u64, after: u64) {
        self.tensors += 1;
        // Each is at most the size of a file, or of a header's claim that was checked.
        self.before = self.before.saturating_add(before);
        self.after = self.after.saturating_add(after);
    }
}

/// How many tensors of which kind there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Encoded matrices of experts.
    pub experts: Figure,
    /// Other encoded matrices.
    pub dense: Figure,
    /// Tensors that the model uses and that are copied.
    pub kept: Figure,
    /// Tensors that the model does not use, which are copied too.
    pub unused: Figure,
}

/// A planned conversion: nothing has been written.
#[derive(Debug)]
pub struct Conversion {
    from: PathBuf,
    options: Options,
    shards: Vec<Shard>,
    sides: Vec<Side>,
    left_out: Vec<String>,
    figures: Figures,
}

/// Refuses what would be written and then not be read, because of names of the source that come to mean something: the headers to be are
/// taken as a reader takes them.
fn check_result(shards: &[Shard], checkpoint: &Checkpoint) -> Result<()> {
    let (mut stored, mut stated, mut names) = (Vec::new(), Stated::default(), HashSet::new());
    for (file, shard) in shards.iter().enumerate() {
        let (entries, notes) = header::of_bytes(&shard.header)?;
        stated.add(&notes)?;
        for entry in entries {
            if !names.insert(entry.name.clone()) {
                return Err(Error::refused(format!("two tensors of the result would be named `{}`", entry.name)));
            }
            stored.push(Stored { file, entry });
        }
    }
    let (quantization, twos) = (quantization::read(checkpoint.config())?, has_twos_note(checkpoint.dir()));
    match packed::tensors(&stored, &stated, quantization, twos).1.into_iter().next() {
        None => Ok(()),
        Some(fault) => {
            Err(fault.within("the result could not be read; keep these tensors, or take what the model does not use out of its files"))
        }
    }
}

impl Conversion {
    /// Checks the source and lays every file out.
    pub fn plan(checkpoint: &Checkpoint, roles: &Roles, options: Options) -> Result<Self> {
        let from = checkpoint.dir().to_path_buf();
        if checkpoint.container() == Container::Gguf {
            let path = checkpoint.path().display();
            return Err(Error::refused(format!("`{path}` is a GGUF file; only a folder of safetensors can be converted")));
        }
        let mut figures = Figures::default();
        let (mut files, mut seen) = (Vec::new(), HashSet::new());
        for place in checkpoint.tensors().iter().flat_map(|tensor| [Some(tensor.values), tensor.scales]).flatten() {
            let path = &checkpoint.file_at(place).path;
            if seen.insert(path) {
                files.push(path.clone());
            }
        }
        let shards: Vec<Shard> =
            files.iter().map(|path| layout::shard(&from, path, roles, options, &mut figures)).collect::<Result<_>>()?;
        check_result(&shards, checkpoint)?;
        let (sides, left_out) = side::list(&from, &files)?;
        Ok(Self { from, options, shards, sides, left_out, figures })
    }

    /// What becomes of which tensors, counted.
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Files of tensors.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Bytes of all files that will be written, but for the index: known beforehand.
    pub fn bytes(&self) -> u64 {
        let shards = self.shards.iter().map(|shard| shard.bytes);
        shards.chain(self.sides.iter().map(|side| side.identity.bytes)).fold(0, u64::saturating_add)
    }

    /// At least the bytes of the index: a line for each tensor, with names, quotes and spaces, where no name has characters to escape.
    fn index_room(&self) -> u64 {
        let line =
            |shard: &Shard| (shard.name.as_os_str().len() + 16) * shard.names.len() + shard.names.iter().map(String::len).sum::<usize>();
        self.shards.iter().map(|shard| line(shard) as u64).fold(0, u64::saturating_add)
    }

    /// Names of files beside the tensors that are not copied.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Takes the target folder: makes it, or goes on with it where it is an unfinished conversion of this source with these options.
    /// Anything else is left alone and refused.
    pub fn open(&self, to: &Path) -> Result<Folder<'_>> {
        folder::open(self, to)
    }
}
