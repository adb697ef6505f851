//! Being asked to stop: Ctrl-C, SIGTERM, SIGHUP. The first asks the work to end at its next good place, the second ends the process.
//!
//! Handlers only set the two numbers below; whoever works looks at them.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use coli_base::{Error, Kind, Result};
#[cfg(unix)]
use signal_hook::consts::SIGHUP;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether a signal has come, after which the next one ends the process.
static ASKED: AtomicBool = AtomicBool::new(false);
/// The number of that signal, 0 before it.
static SIGNAL: AtomicUsize = AtomicUsize::new(0);

/// What asks for a stop: the signal, the exit code that says so, and what to call it.
const REQUESTS: &[(c_int, Kind, &str)] = &[
    (SIGINT, Kind::Interrupted, "Ctrl-C"),
    (SIGTERM, Kind::Terminated, "SIGTERM"),
    #[cfg(unix)]
    (SIGHUP, Kind::HungUp, "SIGHUP"),
];

/// Installs the handlers. Where that is not possible, a signal ends the process as it always does; one that whoever started us has us
/// ignore, as `nohup` does with SIGHUP, stays ignored.
pub(crate) fn install() {
    let ignored = ignored_signals();
    for (signal, kind, _) in REQUESTS.iter().filter(|(signal, ..)| !is_in(ignored, *signal)) {
        // In this order: the first signal must not find itself, and the number is there before anybody looks for it.
        let _ = flag::register_conditional_shutdown(*signal, *kind as c_int, &ASKED);
        let _ = flag::register_usize(*signal, &SIGNAL, *signal as usize);
        let _ = flag::register(*signal, &ASKED);
    }
}

/// Whether a stop was asked for.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// An error once a stop was asked for, which says by what.
pub(crate) fn check() -> Result<()> {
    if !asked() {
        return Ok(());
    }
    let signal = SIGNAL.load(Ordering::SeqCst);
    let request = REQUESTS.iter().find(|(number, ..)| *number as usize == signal);
    let (kind, name) = request.map_or((Kind::Interrupted, "Ctrl-C"), |(_, kind, name)| (*kind, *name));
    Err(Error::new(kind, format!("stopped by {name}")))
}

/// Has a write beyond the limit on the size of files fail, and so be told in a line, where the signal for it would end the process.
pub(crate) fn outlive_file_limit() {
    // Nobody looks at the flag: a handler is enough. Unlike an ignored signal, it is not handed on to child processes.
    #[cfg(unix)]
    {
        static LIMIT: AtomicBool = AtomicBool::new(false);
        let _ = flag::register(signal_hook::consts::SIGXFSZ, &LIMIT);
    }
}

/// The signals that this process ignores, one bit each from 1 on; none where the system does not say.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn is_in(mask: u64, signal: c_int) -> bool {
    u32::try_from(signal - 1).is_ok_and(|bit| mask.checked_shr(bit).is_some_and(|mask| mask & 1 == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signals_bit_is_its_number_less_one() {
        assert!(is_in(1, 1) && is_in(1 << 14, 15) && is_in(1 << 63, 64));
        assert!(!is_in(!1, 1) && !is_in(u64::MAX, 65) && !is_in(u64::MAX, 0));
    }

    /// Rust's own start has it ignored.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_ignored_is_known() {
        assert!(is_in(ignored_signals(), signal_hook::consts::SIGPIPE));
    }
}
