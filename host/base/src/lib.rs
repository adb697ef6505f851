//! What every host crate may use. It knows nothing of models, devices or files.

pub mod crew;
pub mod error;
pub mod files;
pub mod line;
pub mod memory;
pub mod quiet;
pub mod units;

pub use error::{Error, Kind, Result};
