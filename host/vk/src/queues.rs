//! Which queues: one for work, and one that copies beside it where there is one. Pure.

use crate::facts::Family;

/// A queue: its family and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueAt {
    /// The family.
    pub family: u32,
    /// The number.
    pub index: u32,
}

/// Where uploads go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadQueue {
    /// A family that only copies: a copy engine.
    Transfer,
    /// A queue more of the family that works.
    Spare,
    /// The queue that works, under one lock.
    Main,
}

/// The queues of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queues {
    /// The one that works.
    pub main: QueueAt,
    /// The one that uploads.
    pub upload: QueueAt,
    /// What it is.
    pub kind: UploadQueue,
}

/// Chooses the queues; `None` without compute. The first family with compute works: drivers put the one with everything first, and its time
/// limits are the widest.
pub fn choose(families: &[Family], allow_transfer: bool) -> Option<Queues> {
    let at = |index: usize| u32::try_from(index).ok();
    let working = families.iter().position(|family| family.compute && family.count > 0)?;
    let main = QueueAt { family: at(working)?, index: 0 };
    let copies = |family: &Family| family.transfer && !family.compute && !family.graphics && family.count > 0;
    if let Some(family) = families.iter().position(copies).filter(|_| allow_transfer) {
        return Some(Queues { main, upload: QueueAt { family: at(family)?, index: 0 }, kind: UploadQueue::Transfer });
    }
    if families[working].count > 1 {
        return Some(Queues { main, upload: QueueAt { index: 1, ..main }, kind: UploadQueue::Spare });
    }
    let other = families.iter().enumerate().position(|(index, family)| index != working && family.compute && family.count > 0);
    if let Some(family) = other {
        return Some(Queues { main, upload: QueueAt { family: at(family)?, index: 0 }, kind: UploadQueue::Spare });
    }
    Some(Queues { main, upload: main, kind: UploadQueue::Main })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(count: u32, text: &str) -> Family {
        let has = |letter| text.contains(letter);
        Family { count, graphics: has('g'), compute: has('c'), transfer: has('t'), stamp_bits: 64 }
    }

    #[test]
    fn a_copy_engine_then_a_spare_queue_then_the_same() {
        let (main, transfer) = (QueueAt { family: 0, index: 0 }, QueueAt { family: 1, index: 0 });
        // NVIDIA: general, copies, compute.
        let nvidia = [family(16, "gct"), family(2, "t"), family(8, "ct")];
        assert_eq!(choose(&nvidia, true), Some(Queues { main, upload: transfer, kind: UploadQueue::Transfer }));
        let spare = QueueAt { family: 0, index: 1 };
        assert_eq!(choose(&nvidia, false), Some(Queues { main, upload: spare, kind: UploadQueue::Spare }));
        // AMD: one general queue, four for compute.
        let amd = [family(1, "gct"), family(4, "ct")];
        assert_eq!(choose(&amd, true), Some(Queues { main, upload: transfer, kind: UploadQueue::Spare }));
        // Lavapipe.
        assert_eq!(choose(&[family(1, "gct")], true), Some(Queues { main, upload: main, kind: UploadQueue::Main }));
        assert_eq!(choose(&[family(1, "t")], true), None);
        assert_eq!(choose(&[family(0, "gct"), family(1, "ct")], true).unwrap().main, QueueAt { family: 1, index: 0 });
    }
}
