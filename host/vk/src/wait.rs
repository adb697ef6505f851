//! What a finished wait proves. Pure.
//!
//! A driver that resets a device signals what was waiting, so that a killed job looks like one that ended, and only the next submit fails.
//! So three witnesses must agree: the timeline has the submit's value, its fence is signalled without an error, and the job's last command
//! has written its receipt.

use crate::fault::{Fault, Result};

/// The word that the last command of a job writes.
pub(crate) const RECEIPT: u32 = 0xc011_d0e5;

/// How a fence looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FenceState {
    Signalled,
    NotYet,
    Lost,
}

/// What was seen after a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) counter: u64,
    pub(crate) value: u64,
    pub(crate) fence: FenceState,
    pub(crate) receipt: u32,
}

/// Whether the job was done.
pub(crate) fn verdict(seen: Seen) -> Result<()> {
    let lost = |why: &str| Err(Fault::Lost { during: "waiting for a job", why: why.into() });
    match seen {
        Seen { fence: FenceState::Lost, .. } => lost("its fence says so"),
        // Some drivers answer with the largest number once the device is gone.
        Seen { counter: u64::MAX, .. } => lost("its semaphore has no value any more"),
        Seen { counter, value, .. } if counter < value => lost("the wait ended before its semaphore had its value"),
        Seen { fence: FenceState::NotYet, .. } => lost("its semaphore is signalled and its fence is not"),
        Seen { receipt, .. } if receipt != RECEIPT => lost("it was reported as done and its last command had not run"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_takes_every_witness() {
        let done = Seen { counter: 8, value: 7, fence: FenceState::Signalled, receipt: RECEIPT };
        assert_eq!(verdict(done), Ok(()));
        let broken = [
            Seen { counter: 6, ..done },
            Seen { counter: u64::MAX, ..done },
            Seen { fence: FenceState::NotYet, ..done },
            Seen { fence: FenceState::Lost, ..done },
            Seen { receipt: 0, ..done },
        ];
        for seen in broken {
            assert!(verdict(seen).unwrap_err().is_lost(), "{seen:?}");
        }
    }
}
