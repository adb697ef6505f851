//! Model plugins, from a folder on disk to an object that answers.
//!
//! In order: a [`Manifest`] is read and checked, [`Plugins::discover`] finds manifests and refuses what this host cannot serve,
//! [`Plugins::select`] picks the one for a model, a [`Checker`] opens its library in a child process, [`Library::load`] opens it here and
//! checks the layout, and [`PluginModel`] calls it.
//! Nothing of a plugin runs before its manifest has been accepted.
//!
//! Every candidate keeps its [`State`] and the reason of it: see [`Listing`].

mod image;
mod listing;
mod load;
mod manifest;
mod model;
mod own_devices;
mod own_ops;
mod request;
mod scan;
mod search;
mod text;
mod verdicts;

pub use listing::{Listing, State};
pub use load::Library;
pub use manifest::{AbiVersion, MANIFEST_SUFFIX, Manifest};
pub use model::{PluginModel, set_log_level};
pub use own_devices::OwnDevices;
pub use request::Request;
pub use scan::{CHECK_COMMAND, Checker, Recall, check_here};
pub use search::{Folder, Found, Host, ModelKind, Plugins, Selection};
