//! How many threads the CPU executor has.

use coli_base::{Error, Result};

use crate::Choice;

/// More than any machine has processors; a number beyond it is a slip.
const MOST: u32 = 1024;

/// Chooses the threads: those that were asked for, else one for each processor that this process may use.
pub fn choose(request: Option<u32>, processors: usize) -> Result<Choice<usize>> {
    match request {
        Some(threads @ 1..=MOST) => Ok(Choice::new(threads as usize, "asked for by --threads")),
        Some(threads) => Err(Error::usage(format!("--threads: {threads} is not from 1 to {MOST}"))),
        None => Ok(Choice::new(processors.clamp(1, MOST as usize), "the processors that this process may use")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_met_or_refused() {
        assert_eq!(choose(None, 6).unwrap().value, 6);
        assert_eq!(choose(None, 0).unwrap().value, 1);
        assert_eq!(choose(Some(3), 6).unwrap().value, 3);
        assert!(choose(Some(0), 6).unwrap_err().text.contains("0 is not from 1"));
        assert!(choose(Some(1025), 6).is_err());
    }
}
