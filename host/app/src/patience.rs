//! Says what is waited for where a plugin takes long.
//!
//! A plugin's call cannot be interrupted, so somebody else has to notice the time: a thread that does nothing but wait, for as long as
//! the call takes.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Nobody wonders before that.
const PATIENCE: Duration = Duration::from_secs(2);

/// Does the work, and says after a while that `what` is waited for.
pub(crate) fn while_waiting_for<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (done, end) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let watch = move || {
            if end.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                say!("waiting for {what}");
            }
        };
        // Without a thread the wait is silent, and no reason to fail.
        let _ = thread::Builder::new().spawn_scoped(scope, watch);
        let result = work();
        drop(done);
        result
    })
}
