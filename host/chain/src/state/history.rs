//! A conversation's tokens: what its states were made from, and what a plugin's `ids` function looks back on.

/// Tokens from some position on.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// The position of the first one.
    start: u32,
    tokens: Vec<u32>,
}

impl History {
    /// Nothing is known of the positions before `start`.
    pub fn starting_at(start: u32) -> Self {
        Self { start, tokens: vec![] }
    }

    /// Adds the tokens that follow.
    pub fn extend(&mut self, tokens: &[u32]) {
        self.tokens.extend_from_slice(tokens);
    }

    /// Forgets the tokens from position `len` on.
    pub fn truncate(&mut self, len: u32) {
        self.tokens.truncate(len.saturating_sub(self.start) as usize);
    }

    /// The last tokens up to the one at `pos`, at most `window`: fewer where the conversation began later, and where `pos` is not known.
    pub fn window(&self, pos: u32, window: usize) -> &[u32] {
        let end = ((u64::from(pos) + 1).saturating_sub(u64::from(self.start)) as usize).min(self.tokens.len());
        &self.tokens[end.saturating_sub(window)..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_ends_at_its_position() {
        let mut history = History::starting_at(2);
        history.extend(&[5, 6, 7, 8]);
        assert_eq!(history.window(4, 2), [6, 7]);
        assert_eq!(history.window(4, 9), [5, 6, 7]);
        assert_eq!(history.window(1, 3), [0u32; 0]);
        history.truncate(4);
        assert_eq!(history.window(u32::MAX, 3), [5, 6]);
        history.truncate(0);
        assert_eq!(history.window(5, 3), [0u32; 0]);
    }
}
