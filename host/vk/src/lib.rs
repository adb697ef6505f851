//! The device layer: the only crate that calls Vulkan, and the only one that uses `ash`.
//!
//! From the bottom up:
//!
//! - [`loader`] says where Vulkan's loader may lie, [`Instance`] opens it when a device is wanted, and only then: the program links nothing
//!   of Vulkan and starts on a machine without it.
//! - [`facts`] is a device as plain data. [`choose`], [`quirks`], [`queues`] and [`memory`] decide from it: pure functions, tested with the
//!   tables of devices that nobody here has.
//! - [`Device`] is an opened device: its queues and its memory, from which [`Buffer`]s come. A buffer is a range of a large block and has a
//!   device address, which is how kernels reach it.
//! - [`Pipeline`]s are made from SPIR-V. [`Commands`] are recorded once and submitted many times.
//!
//! # What holds
//!
//! - Nothing here prints, reads the environment or starts a thread. Every failure is a [`Fault`], which says whether the device is lost.
//! - A wait succeeds only when the device has shown that it did the work (`wait`): a job that the driver killed is [`Fault::Lost`].
//! - What a submit may still read lives until it has ended, whoever drops it: memory goes back behind the last submit, and
//!   [`Commands`] keep what they use.
//! - Kernels are trusted as our own code is: one that is given an address may write there whatever it likes. SPIR-V that comes from outside
//!   is looked at first ([`spirv`]) and has no addresses: it runs over bound buffers that it cannot leave ([`BoundPipeline`]).
//!
//! It knows no op, no format, no model and no setting: limits, paths and choices are arguments.

mod blocks;
mod bound;
mod buffer;
pub mod cache;
pub mod choose;
mod commands;
mod device;
pub mod facts;
mod fault;
mod import;
mod instance;
pub mod loader;
pub mod memory;
mod oneshot;
mod open;
mod pipeline;
mod query;
pub mod queues;
pub mod quirks;
pub mod spirv;
mod upload;
mod wait;

pub use bound::{Bound, BoundKernel, BoundPipeline};
pub use buffer::{Buffer, Region};
pub use commands::{Commands, Recorder};
pub use device::{Device, MemoryReport};
pub use fault::{Fault, Result};
pub use import::HostPages;
pub use instance::Instance;
pub use open::{Options, Probe};
pub use pipeline::{Kernel, Pipeline};
pub use upload::{Piece, UploadReport};
