//! Decisions about where and how work runs. Each is a pure function from facts to a [`Choice`], or an error of kind `Unmet` where a
//! person asked for something that cannot be had: an explicit request is never answered with something else.
//!
//! The reason in a choice is what the log prints.

pub mod context;
pub mod device;
pub mod memory;
pub mod precision;
pub mod prompt;
pub mod threads;

/// A decision and why it fell so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice<T> {
    /// What was decided.
    pub value: T,
    /// Why, in words for the log.
    pub reason: String,
}

impl<T> Choice<T> {
    /// A decision with its reason.
    pub fn new(value: T, reason: impl Into<String>) -> Self {
        Self { value, reason: reason.into() }
    }
}
