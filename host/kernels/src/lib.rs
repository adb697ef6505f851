//! The op library's kernels as SPIR-V, found at run time.
//!
//! With the feature `spirv` the build script compiles every module of [`coli_shaders::device`] and the set is embedded; without it nothing
//! is compiled and no C++ is needed. Either way a set can be given as a file. The hash of the GLSL texts ties a set to a program: one that
//! was made of other texts is refused, whoever compiled it.

mod archive;
pub mod layout;
#[cfg(test)]
mod pack;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::LazyLock;

use archive::{Head, Modules};
use coli_base::{Error, Result, files};
use layout::{Hash, PACKED_MAX};

/// The folder beside the program in which a set may lie.
pub const FOLDER: &str = "shaders";
/// The name of a set's file.
pub const FILE: &str = "kernels.bin";
/// The setting that names another set, for messages.
const SETTING: &str = "COLI_VK_SHADERS";

#[cfg(feature = "spirv")]
const EMBEDDED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kernels.bin"));
#[cfg(not(feature = "spirv"))]
const EMBEDDED: &[u8] = &[];

/// The hash of the texts that this program's plans were written for. That of an embedded set is known; else it is taken of the texts.
static SOURCES: LazyLock<Hash> = LazyLock::new(|| match Head::read(EMBEDDED) {
    Ok(head) => head.sources,
    Err(_) => layout::hash_of_sources(&coli_shaders::device::modules()),
});

/// Modules of SPIR-V by name.
#[derive(Debug)]
pub struct Kernels {
    modules: Modules,
    origin: String,
}

impl Kernels {
    /// Whether this build has kernels of its own.
    pub fn are_built() -> bool {
        !EMBEDDED.is_empty()
    }

    /// The set that was built in, as a file has it; empty where there is none.
    pub fn archive() -> &'static [u8] {
        EMBEDDED
    }

    /// The set that counts: the one that a person named, a file or a folder with [`FILE`]; else the one in the [`FOLDER`] of the program's
    /// own folder; else the one that was built in. What is there and does not fit is an error, since another one would take its place
    /// unseen.
    pub fn open(named: Option<&Path>, home: Option<&Path>) -> Result<Self> {
        if let Some(path) = named {
            let file = if path.is_dir() { path.join(FILE) } else { path.to_path_buf() };
            let found = Self::from_file(&file)?;
            return found.ok_or_else(|| {
                Error::usage(format!(
                    "the setting vk_shaders ({SETTING}) names `{}`, and `{}` is not there",
                    path.display(),
                    file.display()
                ))
            });
        }
        let beside = home.map(|home| Self::from_file(&home.join(FOLDER).join(FILE))).transpose()?.flatten();
        beside.map_or_else(Self::embedded, Ok)
    }

    /// The set that was built in.
    pub fn embedded() -> Result<Self> {
        if !Self::are_built() {
            return Err(Error::unmet("this build has no Vulkan kernels; build with ./coli.sh build --vulkan"));
        }
        Self::from_bytes(EMBEDDED, "built in").map_err(|fault| Error::refused(format!("the built-in kernels: {fault}")))
    }

    /// The set in a file, `None` where there is no such file.
    fn from_file(path: &Path) -> Result<Option<Self>> {
        let place = format!("`{}`", path.display());
        let Some(bytes) = files::read_bounded(path, PACKED_MAX).map_err(|error| error.within("the Vulkan kernels"))? else {
            return Ok(None);
        };
        let advice = "take the file from this program's own release, or remove it";
        let refuse = |fault| Error::refused(format!("the Vulkan kernels in {place}: {fault}; {advice}"));
        Self::from_bytes(&bytes, &place).map(Some).map_err(refuse)
    }

    fn from_bytes(bytes: &[u8], origin: &str) -> std::result::Result<Self, String> {
        let head = Head::read(bytes)?;
        if head.sources != *SOURCES {
            return Err("they were made of other sources than this program".into());
        }
        Ok(Self { modules: Modules::unpack(&head, bytes)?, origin: origin.into() })
    }

    /// A module's SPIR-V, `None` where there is no such module.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.modules.get(name)
    }

    /// The names of all modules, in no order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.modules.names()
    }

    /// Where the set was found, for people: `built in`, or a path.
    pub fn origin(&self) -> &str {
        &self.origin
    }
}
