//! Stored models. A [`Checkpoint`] is a folder of safetensors, or a GGUF file, whose headers have all been checked; a [`Plan`] is a
//! plugin's description held against it, every read with its place in memory; [`Weights`] are the bytes, as stored.
//!
//! The order is fixed: everything that can be found out from headers is found out before the first weight byte is read, so that a wrong
//! model is refused at once and not after minutes of loading.

mod checkpoint;
pub mod convert;
mod file;
pub mod gguf;
mod header;
mod load;
mod memory;
mod packed;
mod plan;
mod quantization;
mod spans;
#[cfg(test)]
mod testing;
mod view;
mod write;

pub use checkpoint::{Checkpoint, Survey, Tensor, open, optional_object, survey};
pub use load::{Progress, Weights, load};
pub use plan::Plan;
pub use write::{F32Tensor, OutFile, write_safetensors};
