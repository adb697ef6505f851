//! The ops, one line each. A line here and a folder are all that adding an op takes.

use crate::contract::OpEntry;

pub mod append;
pub mod attend;
pub mod ew;
pub mod gather;
pub mod glu;
pub mod matmul;
pub mod moe;
pub mod norm;
pub mod rope;
pub mod route;
pub mod sample;
pub mod take;

/// Every op of the library.
pub fn all() -> Vec<OpEntry> {
    vec![
        OpEntry::of::<append::Append>(),
        OpEntry::of::<attend::Attend>(),
        OpEntry::of::<ew::Ew>(),
        OpEntry::of::<gather::Gather>(),
        OpEntry::of::<glu::Glu>(),
        OpEntry::of::<matmul::Matmul>(),
        OpEntry::of::<moe::Moe>(),
        OpEntry::of::<norm::Norm>(),
        OpEntry::of::<rope::Rope>(),
        OpEntry::of::<route::Route>(),
        OpEntry::of::<sample::Sample>(),
        OpEntry::of::<take::Take>(),
    ]
}

#[cfg(test)]
mod tests;
