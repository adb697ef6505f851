//! Calls into code that may panic on bad data, without the panic's own lines on standard error.
//!
//! `plugin-api/src/boundary.rs` has a hook of the same kind. They stay two: that crate depends on nothing of ours, so that plugins are
//! built without the host, and this one on nothing at all; and each library has its own copy of the standard library, and so of the hook.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// The call's value, or `None` where it panicked. The hook prints nothing on this thread meanwhile; elsewhere it does what it did before.
pub fn catch<T>(call: impl FnOnce() -> T) -> Option<T> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    let outer = QUIET.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(call));
    QUIET.set(outer);
    outcome.ok()
}

#[cfg(test)]
mod tests {
    use super::catch;

    #[test]
    fn a_panic_is_none_and_a_value_passes() {
        assert_eq!(catch(|| 7), Some(7));
        assert_eq!(catch(|| -> u32 { panic!("on purpose") }), None);
        assert_eq!(catch(|| catch(|| -> u32 { panic!("on purpose") })), Some(None));
    }
}
