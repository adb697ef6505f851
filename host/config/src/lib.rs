//! Settings: their table, their values from the environment and from `coli.toml`, and the folders that follow from them.
//!
//! This is the only crate that reads the environment. [`Environment::read`] takes all of it once and checks it against [`SETTINGS`];
//! everything after that is a function of its fields, so that tests give them instead. A value counts by where it came from: the command
//! line, the environment, a settings file, the model's own files, the table's default ([`Source`]).

mod environment;
mod file;
mod places;
mod suggest;
mod table;
mod value;

pub use environment::Environment;
pub use places::{Baked, COMMIT, Place};
pub use suggest::nearest;
pub use table::{Fallback, Key, PREFIX, Reader, SETTINGS, Setting, Unit};
pub use value::{Source, Value, Values};
