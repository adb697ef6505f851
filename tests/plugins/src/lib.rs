//! What the loader's tests share: libraries that are built for them, plugin folders, and the model that the hostile plugin serves.
//!
//! The libraries go into a target folder beside the one with the program, `plugins`: cargo sees to it that each is built once.
#![allow(clippy::unwrap_used)]

pub mod folder;
pub mod libraries;
pub mod model;
pub mod outside;
