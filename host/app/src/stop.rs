//! Ctrl-C: the first one asks the generation to stop after the token at hand, the second one ends the process.

use std::sync::atomic::{AtomicBool, Ordering};

use coli_base::Kind;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Installs the handler. Where that is not possible, Ctrl-C ends the process as it always does.
pub(crate) fn install() {
    let handler = || {
        if ASKED.swap(true, Ordering::SeqCst) {
            std::process::exit(Kind::Interrupted as i32);
        }
    };
    let _ = ctrlc::set_handler(handler);
}

/// Whether a stop was asked for.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}
