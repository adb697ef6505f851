//! The op library. One op is one folder, one weight format is one folder; nothing here knows Vulkan, files, threads or a model's name.
//!
//! An op folder holds the op's contract (formula, roles, parameters, the typed record function that plugins call), its CPU twin, which is
//! the definition of exact mode, and its cases. [`contract`] says what an op must provide, [`ops`] lists the ops, [`formats`] the weight
//! formats, and [`sums`] fixes the order of sums.

pub mod contract;
pub mod device;
pub mod fast;
pub mod formats;
pub mod ops;
pub mod sums;

/// The plugin contract, re-exported so that a plugin needs one import path for ops and data.
pub use coli_plugin_api as api;
