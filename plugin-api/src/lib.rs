//! The contract between coli and a model plugin. A plugin author reads this crate and `coli-shaders` and nothing else of ours.
//!
//! A plugin **describes** a model ([`describe`]: dimensions, weights as views of stored tensors, states, expert groups, segments) and
//! **records** each segment of its forward pass as data ([`program`], written with a [`recorder::Recorder`] and the typed record
//! functions of `coli-shaders`). It never sees a device, a thread, a file or a pointer to weights.
//!
//! A plugin may bring ops of its own ([`own_op`]); `coli_shaders::contract::own` makes one from a plain `Op`.
//!
//! The path across the border: an author implements [`Plugin`]; [`export_plugin!`] wraps it in the guard of [`boundary`], which turns
//! panics into errors; the host calls it through the frozen layout of [`abi`]. Segments cross as bytes in the format of [`codec`].

pub mod abi;
pub mod boundary;
pub mod codec;
pub mod describe;
pub mod own_op;
pub mod params;
mod plugin;
pub mod program;
pub mod recorder;

pub use plugin::{Log, LogLevel, Plugin};

/// Re-exported for the code that [`export_plugin!`] writes in a plugin's crate.
#[doc(hidden)]
pub use abi_stable;
/// Re-exported so that a plugin reads `config` with the same JSON types that [`describe::DescribeRequest`] carries.
pub use serde_json;
