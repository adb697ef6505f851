//! Whether what is planned fits the memory that is left.

use coli_base::units::Bytes;
use coli_base::{Error, Result};

/// Refuses a plan that is larger than the memory left. Linux grants more than it has and ends a process later, without a word; so the
/// plan is held against what is left before any of it is taken. Where the system does not say, nothing is refused.
pub fn check(planned_bytes: u64, available_bytes: Option<u64>) -> Result<()> {
    match available_bytes {
        Some(available) if planned_bytes > available => Err(Error::run(format!(
            "this model needs {} of memory, and {} are left; free some, or make the context smaller with --ctx",
            Bytes(planned_bytes),
            Bytes(available)
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_plan_over_what_is_left_names_both() {
        assert!(check(10 << 30, None).is_ok() && check(1 << 30, Some(1 << 30)).is_ok());
        let error = check(3 << 30, Some(2 << 30)).unwrap_err();
        assert!(error.text.contains("3.0 GiB") && error.text.contains("2.0 GiB"), "{error}");
    }
}
