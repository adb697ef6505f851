//! Recorded programs and the executors that run them.
//!
//! The order of a token's path is the order of the modules: [`program`] turns a plugin's bytes into a program that nothing can be wrong
//! with; [`state`] holds what conversations remember; [`step`] says which rows run; [`cpu`] runs them; [`relay`] has several executors run
//! a part of the segments each. [`case`] runs the cases of ops, [`profile`] tells where time goes.
//!
//! What this crate must not know: files, tokenizers, plugins as libraries, model names.

pub mod case;
pub mod cpu;
mod executor;
mod inputs;
mod ports;
pub mod profile;
pub mod program;
pub mod relay;
#[cfg(test)]
mod small_model;
pub mod state;
pub mod step;
pub mod vulkan;

pub use cpu::CpuExecutor;
pub use inputs::IdSource;
pub use profile::Profile;
pub use program::{PortSpec, Program};
pub use relay::{Cutting, Relay, StageDevice, cuts_for_device};
pub use state::{ConvId, Snapshot, States};
pub use step::{Row, Step};
