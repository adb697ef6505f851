//! What every host crate may use. It knows nothing of models, devices or files.

pub mod error;
pub mod memory;
pub mod units;

pub use error::{Error, Kind, Result};
