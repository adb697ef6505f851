//! How many prompt rows run in one step.

use crate::Choice;

/// Chunks begin at multiples of this many positions, so that a prompt's bits do not depend on the chunk's size.
pub const GRAIN: u32 = 64;
/// Scratch grows with the rows of a chunk; beyond this many, the weights that a step reads are already shared by enough rows.
const MOST: u32 = 512;

/// Chooses the rows of a prompt chunk, `64 * 2^k`, for a context of so many positions.
pub fn chunk_rows(context: u32) -> Choice<u32> {
    let mut rows = GRAIN;
    while rows < MOST && rows < context {
        rows *= 2;
    }
    let reason = if rows < MOST { format!("holds the whole context of {context}") } else { "enough rows share each weight read".into() };
    Choice::new(rows, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_powers_of_two_of_the_grain_and_no_larger_than_needed() {
        for (context, rows) in [(0, 64), (1, 64), (64, 64), (65, 128), (128, 128), (129, 256), (4096, 512), (u32::MAX, 512)] {
            assert_eq!(chunk_rows(context).value, rows, "{context}");
        }
    }
}
