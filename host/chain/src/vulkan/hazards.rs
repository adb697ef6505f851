//! Where barriers must stand: between a writing and what touches the same memory after it, or between a reading and a writing.

use std::ops::Range;

use coli_plugin_api::program::StateId;

/// Memory that dispatches share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Memory {
    /// A slot of scratch memory.
    Slot(usize),
    /// The rows of a state.
    State(StateId),
    /// Bytes that an op's dispatches share.
    Scratch(Range<u64>),
}

impl Memory {
    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Scratch(a), Self::Scratch(b)) => a.start < b.end && b.start < a.end,
            (a, b) => a == b,
        }
    }
}

/// What was touched since the last barrier.
#[derive(Debug, Default)]
pub(super) struct Hazards {
    read: Vec<Memory>,
    written: Vec<Memory>,
}

impl Hazards {
    /// Notes a dispatch; `true` where a barrier must stand before it.
    pub fn note(&mut self, reads: Vec<Memory>, writes: Vec<Memory>) -> bool {
        let met = |list: &[Memory], memory: &Memory| list.iter().any(|one| one.meets(memory));
        let after_write = reads.iter().chain(&writes).any(|memory| met(&self.written, memory));
        let barrier = after_write || writes.iter().any(|memory| met(&self.read, memory));
        if barrier {
            self.read.clear();
            self.written.clear();
        }
        self.read.extend(reads);
        self.written.extend(writes);
        barrier
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(number: usize) -> Vec<Memory> {
        vec![Memory::Slot(number)]
    }

    #[test]
    fn barriers_stand_between_what_depends() {
        let mut hazards = Hazards::default();
        assert!(!hazards.note(slot(0), slot(1)), "nothing before");
        assert!(!hazards.note(slot(0), slot(2)), "two readers of one slot");
        assert!(hazards.note(slot(1), slot(3)), "a reading after a writing");
        assert!(!hazards.note(slot(2), slot(4)), "the barrier stands behind that writing");
        assert!(hazards.note(slot(5), slot(2)), "a writing after a reading");
        assert!(hazards.note(vec![], slot(2)), "two writings");
    }

    #[test]
    fn scratch_meets_where_ranges_do() {
        let mut hazards = Hazards::default();
        assert!(!hazards.note(vec![], vec![Memory::Scratch(0..8)]));
        assert!(!hazards.note(vec![Memory::Scratch(8..16)], vec![]));
        assert!(hazards.note(vec![Memory::Scratch(4..12)], vec![]));
    }
}
