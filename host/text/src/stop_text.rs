//! Texts that end a text, looked for as it comes: what may become one of them is held back until that is decided.

use coli_base::{Error, Result};

/// Looks for stop texts. What it gives out does not depend on how the text is cut into pieces: the stop text that is complete first
/// counts, of those the one that begins first, and nothing of it is given out.
#[derive(Debug, Clone, Default)]
pub struct StopTexts {
    texts: Vec<String>,
    held: String,
}

impl StopTexts {
    /// These texts, none of which may be empty.
    pub fn new(texts: &[String]) -> Result<Self> {
        if texts.iter().any(String::is_empty) {
            return Err(Error::usage("--stop: an empty text would stop everything"));
        }
        Ok(Self { texts: texts.to_vec(), held: String::new() })
    }

    /// The text that is final after this piece, and whether a stop text ended it.
    pub fn push(&mut self, piece: &str) -> (String, bool) {
        self.held.push_str(piece);
        let ends = self.texts.iter().filter_map(|text| self.held.find(text.as_str()).map(|start| (start + text.len(), start)));
        if let Some((_, start)) = ends.min() {
            self.held.truncate(start);
            return (std::mem::take(&mut self.held), true);
        }
        let rest = self.held.split_off(self.held.len() - self.open_bytes());
        (std::mem::replace(&mut self.held, rest), false)
    }

    /// What is held back, when no more comes.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// The length of the longest end of what is held that a stop text begins with.
    fn open_bytes(&self) -> usize {
        let longest = self.texts.iter().map(String::len).max().unwrap_or(0).saturating_sub(1);
        let bytes = self.held.as_bytes();
        let lengths = (1..=longest.min(bytes.len())).rev();
        // A stop text begins with a whole character, so an end inside of one never matches.
        let mut open = lengths.filter(|len| self.texts.iter().any(|text| text.as_bytes().starts_with(&bytes[bytes.len() - len..])));
        open.next().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Text given out and whether it was stopped, for a text in pieces of so many characters.
    fn run(stops: &[&str], text: &str, size: usize) -> (String, bool) {
        let stops: Vec<String> = stops.iter().map(ToString::to_string).collect();
        let mut filter = StopTexts::new(&stops).unwrap();
        let characters: Vec<char> = text.chars().collect();
        let mut out = String::new();
        for piece in characters.chunks(size) {
            let (text, stopped) = filter.push(&piece.iter().collect::<String>());
            out += &text;
            if stopped {
                return (out, true);
            }
        }
        (out + &filter.finish(), false)
    }

    #[test]
    fn the_text_ends_before_a_stop_text_however_it_is_cut() {
        let cases: [(&[&str], &str, &str, bool); 8] = [
            (&[], "abc", "abc", false),
            (&["b"], "abc", "a", true),
            (&["\n\n"], "a\nb\n\nc", "a\nb", true),
            (&["END"], "EENEND.", "EEN", true),
            (&["abab"], "ababab", "", true),
            (&["aab"], "aaaab", "aa", true),
            (&["é漢"], "xé漢y", "x", true),
            (&["abc"], "xab", "xab", false),
        ];
        for (stops, text, out, stopped) in cases {
            for size in 1..=8 {
                assert_eq!(run(stops, text, size), (out.into(), stopped), "{stops:?} in {text:?} by {size}");
            }
        }
    }

    #[test]
    fn of_several_the_one_that_is_complete_first_counts() {
        for size in 1..=4 {
            assert_eq!(run(&["abcd", "c"], "xabcd", size), ("xab".into(), true));
            assert_eq!(run(&["c", "abc"], "xabcd", size), ("x".into(), true));
        }
    }

    #[test]
    fn what_cannot_become_a_stop_text_is_given_out_at_once() {
        let mut filter = StopTexts::new(&["stop".into()]).unwrap();
        assert_eq!(filter.push("a s"), ("a ".into(), false));
        assert_eq!(filter.push("to"), ("".into(), false));
        assert_eq!(filter.push("e"), ("stoe".into(), false));
        assert_eq!(filter.push("st"), ("".into(), false));
        assert_eq!(filter.finish(), "st");
        assert!(StopTexts::new(&["a".into(), String::new()]).is_err());
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(text in "[ab漢]{0,24}", stops in proptest::collection::vec("[ab漢]{1,4}", 0..3), size in 1usize..6) {
            let stops: Vec<&str> = stops.iter().map(String::as_str).collect();
            let whole = run(&stops, &text, 1);
            prop_assert_eq!(run(&stops, &text, size), whole.clone());
            prop_assert_eq!(whole.1, stops.iter().any(|stop| text.contains(stop)));
            prop_assert!(text.starts_with(&whole.0));
        }
    }
}
