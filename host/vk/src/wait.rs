//! What a finished wait proves. Pure.
//!
//! A driver that resets a device signals what was waiting, so that a killed job looks like one that ended, and only the next submit fails.
//! So two witnesses must agree: the timeline has the submit's value, and the job's last command, behind a barrier for everything before it,
//! has written its receipt. A fence would say no more than the timeline does, and waiting for one costs 20 to 35 microseconds a submit on
//! an H200, where the receipt costs none that can be measured.

use crate::fault::{Fault, Result};

/// The word that the last command of a job writes.
pub(crate) const RECEIPT: u32 = 0xc011_d0e5;

/// What was seen after a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) counter: u64,
    pub(crate) value: u64,
    pub(crate) receipt: u32,
}

/// Whether the job was done.
pub(crate) fn verdict(seen: Seen) -> Result<()> {
    let lost = |why: &str| Err(Fault::Lost { during: "waiting for a job", why: why.into() });
    match seen {
        // Some drivers answer with the largest number once the device is gone.
        Seen { counter: u64::MAX, .. } => lost("its semaphore has no value any more"),
        Seen { counter, value, .. } if counter < value => lost("the wait ended before its semaphore had its value"),
        Seen { receipt, .. } if receipt != RECEIPT => lost("it was reported as done and its last command had not run"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_takes_every_witness() {
        let done = Seen { counter: 8, value: 7, receipt: RECEIPT };
        assert_eq!(verdict(done), Ok(()));
        for seen in [Seen { counter: 6, ..done }, Seen { counter: u64::MAX, ..done }, Seen { receipt: 0, ..done }] {
            assert!(verdict(seen).unwrap_err().is_lost(), "{seen:?}");
        }
    }
}
