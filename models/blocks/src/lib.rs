//! What two or more plugins share. Nothing here knows a model's name.
//!
//! [`gguf`] finds the same models in GGUF files; [`keys`] reads `config.json`; [`mlp`] describes and records a gated MLP; [`states`]
//! describes what is remembered; [`streams`] is a residual of several streams with mixing weights of its own. [`testing`] is for the
//! plugins' tests.

pub mod gguf;
pub mod keys;
pub mod mlp;
pub mod states;
pub mod streams;
pub mod testing;
