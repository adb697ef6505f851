//! The repository's rules, checked over its files as they are now.
//!
//! A rule is a function from the [`Tree`] to what breaks it, all of it; [`rules::RULES`] lists them, and `tests/rules.rs` holds each.
//! Beside each rule stand samples that break it, so that a rule that can no longer fail shows. `exceptions.txt` lists what is over a
//! budget, with its present size: an entry may shrink or go, never grow.
//!
//! [`generate`] writes `docs/generated/`; `cargo run --release -p coli-test-tidy` does that.

pub mod exceptions;
pub mod generate;
pub mod items;
pub mod manifest;
pub mod rules;
pub mod source;
pub mod tree;

pub use source::Source;
pub use tree::{File, Tree};
