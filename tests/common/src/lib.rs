//! What several test crates use. It may panic: it serves tests only.
#![allow(clippy::unwrap_used)]

pub mod assembled;
pub mod built;
pub mod cases;
pub mod compare;
pub mod drivers;
pub mod fixture;
