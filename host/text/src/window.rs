//! Decoders that look at a token's neighbours: they drop a leading space, join pieces, or make characters of byte tokens.
//!
//! Such a decoder is asked twice, for a few tokens before the new ones without and with them; what the new ones add is their text. The
//! tokens before are whole units (the ids that together gave a text), so that they never start inside a character.

use std::collections::VecDeque;

use coli_base::Result;

use crate::tokenizer::Tokenizer;

/// Units before the new ids. One shields the new ids from what a decoder does at a text's start; a few more cost little.
const UNITS: usize = 3;

/// A character has at most 4 bytes, and so at most 4 byte tokens: what is broken after 4 ids stays broken.
const HELD_MAX: usize = 4;

/// The ids that the next text depends on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Window {
    units: VecDeque<Vec<u32>>,
    held: Vec<u32>,
}

impl Window {
    /// The text that is final after `id`.
    pub(crate) fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> Result<String> {
        self.held.push(id);
        let text = self.held_text(tokenizer)?;
        if text.ends_with(char::REPLACEMENT_CHARACTER) && self.held.len() < HELD_MAX {
            return Ok(String::new());
        }
        let unit = std::mem::take(&mut self.held);
        // A broken unit would break the byte tokens beside it in every later window.
        if !text.contains(char::REPLACEMENT_CHARACTER) {
            self.units.push_back(unit);
            if self.units.len() > UNITS {
                self.units.pop_front();
            }
        }
        Ok(text)
    }

    /// The text of ids that are still held when no more come.
    pub(crate) fn finish(&mut self, tokenizer: &Tokenizer) -> Result<String> {
        let text = self.held_text(tokenizer)?;
        self.held.clear();
        Ok(text)
    }

    fn held_text(&self, tokenizer: &Tokenizer) -> Result<String> {
        if self.held.is_empty() {
            return Ok(String::new());
        }
        let mut ids: Vec<u32> = self.units.iter().flatten().copied().collect();
        // A decoder given nothing may still answer with something, and some fail.
        let before = if ids.is_empty() { String::new() } else { tokenizer.decode(&ids)? };
        ids.extend(&self.held);
        match tokenizer.decode(&ids)?.strip_prefix(&before) {
            Some(text) => Ok(text.to_owned()),
            // Broken byte tokens change the text of whole ones before them, which is out already.
            None => tokenizer.decode(&self.held),
        }
    }
}
