//! The ops, one line each. A line here and a folder are all that adding an op takes.

use crate::contract::OpEntry;

pub mod act;
pub mod append;
pub mod attend;
pub mod concat;
pub mod delta;
pub mod dot;
pub mod ew;
pub mod gather;
pub mod glu;
pub mod index_topk;
pub mod matmul;
pub mod matmul_heads;
pub mod mhc_split;
pub mod mix;
pub mod moe;
pub mod norm;
pub mod pool;
pub mod rope;
pub mod route;
pub mod sample;
pub mod short_conv;
pub mod spread;
pub mod take;

/// Every op of the library.
pub fn all() -> Vec<OpEntry> {
    vec![
        OpEntry::of::<act::Act>(),
        OpEntry::of::<append::Append>(),
        OpEntry::of::<attend::Attend>(),
        OpEntry::of::<concat::Concat>(),
        OpEntry::of::<delta::Delta>(),
        OpEntry::of::<dot::Dot>(),
        OpEntry::of::<ew::Ew>(),
        OpEntry::of::<gather::Gather>(),
        OpEntry::of::<glu::Glu>(),
        OpEntry::of::<index_topk::IndexTopk>(),
        OpEntry::of::<matmul::Matmul>(),
        OpEntry::of::<matmul_heads::MatmulHeads>(),
        OpEntry::of::<mhc_split::MhcSplit>(),
        OpEntry::of::<mix::Mix>(),
        OpEntry::of::<moe::Moe>(),
        OpEntry::of::<norm::Norm>(),
        OpEntry::of::<pool::Pool>(),
        OpEntry::of::<rope::Rope>(),
        OpEntry::of::<route::Route>(),
        OpEntry::of::<sample::Sample>(),
        OpEntry::of::<short_conv::ShortConv>(),
        OpEntry::of::<spread::Spread>(),
        OpEntry::of::<take::Take>(),
    ]
}

/// Whether an op takes the rows of its states as f32 and as binary16 alike, in fast mode.
pub fn takes_halves(id: &str) -> bool {
    matches!(id, "append@1" | "attend@1")
}

#[cfg(test)]
pub(crate) mod refusals;
#[cfg(test)]
mod tests;
