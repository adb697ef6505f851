//! Settings: their table, their values from the environment, and the folders that follow from them.
//!
//! This is the only crate that reads the environment. [`Environment::read`] takes all of it once and checks it against [`SETTINGS`];
//! everything after that is a function of its fields, so that tests give them instead.

mod environment;
mod places;
mod suggest;
mod table;

pub use environment::Environment;
pub use places::{Baked, Place};
pub use suggest::nearest;
pub use table::{Key, PREFIX, Reader, SETTINGS, Setting, Unit};
