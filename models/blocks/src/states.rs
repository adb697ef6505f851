//! States as plugins describe them.

use coli_plugin_api::describe::{Description, Keep, RowPart, SegmentName, State, StateKind};
use coli_plugin_api::program::StateId;

/// Adds a state to a description.
#[derive(Debug, Clone, Copy)]
pub struct Describe<'a> {
    /// What it is, for messages.
    pub role: &'a str,
    /// The segment that writes it.
    pub owner: SegmentName,
    /// Whether later segments read it too.
    pub shared: bool,
}

impl<'a> Describe<'a> {
    /// A state of one segment.
    pub fn own(role: &'a str, owner: SegmentName) -> Self {
        Self { role, owner, shared: false }
    }

    /// A state that later segments read too.
    pub fn shared(role: &'a str, owner: SegmentName) -> Self {
        Self { role, owner, shared: true }
    }

    /// A row for every `stride` positions, all kept, whose parts may be rounded in fast mode.
    pub fn rows(self, d: &mut Description, widths: &[u32], stride: u32) -> StateId {
        let parts = widths.iter().map(|width| RowPart { width: *width, may_round: true }).collect();
        self.add(d, StateKind::Rows { parts, stride, keep: Keep::All })
    }

    /// The rows of the last `n` positions, rounded in fast mode where `may_round`.
    pub fn last(self, d: &mut Description, widths: &[u32], n: u32, may_round: bool) -> StateId {
        let parts = widths.iter().map(|width| RowPart { width: *width, may_round }).collect();
        self.add(d, StateKind::Rows { parts, stride: 1, keep: Keep::Last(n) })
    }

    /// An accumulator.
    pub fn accumulator(self, d: &mut Description, shape: &[u32]) -> StateId {
        self.add(d, StateKind::Accumulator { shape: shape.into() })
    }

    fn add(self, d: &mut Description, kind: StateKind) -> StateId {
        d.state(State { role: self.role.into(), owner: self.owner, shared: self.shared, kind })
    }
}
