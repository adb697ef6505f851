//! The token map: ids whose texts read alike get one compressed id.
//!
//! Source: the behaviour of mlx-vlm 0.7.10, `deepseek_v41`, checked by running it. Tokens are taken in the order of their ids. Each has a
//! key, and keys are numbered in the order in which they first appear. The key is the text after, in this order: NFKC, NFD, without
//! combining marks, lower case (char by char, so a final sigma is no special case), each run of space, tab, return and newline one space,
//! and without white space at both ends unless the text is one space. A text of which nothing is left is its own key. U+E000 becomes a
//! space at the end, since the reference uses it as a stand-in.
//!
//! The reference's normalizers are those of `tokenizers`, hence the same crate here: Unicode 9, where a combining mark is every character
//! of category M (Mn, Mc and Me), not Mn alone.
//!
//! A token whose text has U+FFFD does not decode. **Its key is the token as `tokenizer.json` stores it**, taken as it stands, and it may
//! be equal to another token's normalized text: the lone byte stored as `æ` and the letter `æ` share an id. With DeepSeek's V4 tokenizer
//! 27 tokens do: 99092 ids, as published, against 99119 without them. So a text may be given as U+FFFD followed by the stored token; a
//! token without a text, or with U+FFFD in another place, gets an id of its own.

use std::collections::HashMap;

use unicode_normalization_alignments::UnicodeNormalization;
use unicode_normalization_alignments::char::is_combining_mark;

const UNDECODABLE: char = '\u{FFFD}';
const STAND_IN: char = '\u{E000}';

/// The compressed id of each token.
pub(crate) struct TokenMap {
    ids: Vec<u64>,
    size: u64,
}

#[derive(PartialEq, Eq, Hash)]
enum Key {
    Text(String),
    Own(usize),
}

impl TokenMap {
    pub(crate) fn new(texts: &[Option<String>]) -> Self {
        let mut keys = HashMap::new();
        let mut number = |(token, text): (usize, &Option<String>)| {
            let next = keys.len() as u64;
            *keys.entry(key(token, text.as_deref())).or_insert(next)
        };
        let ids = texts.iter().enumerate().map(&mut number).collect();
        Self { ids, size: keys.len() as u64 }
    }

    /// How many compressed ids there are.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn get(&self, token: u32) -> Option<u64> {
        self.ids.get(token as usize).copied()
    }
}

fn key(token: usize, text: Option<&str>) -> Key {
    let Some(text) = text else { return Key::Own(token) };
    if !text.contains(UNDECODABLE) {
        return Key::Text(normalized(text));
    }
    match text.strip_prefix(UNDECODABLE) {
        Some(stored) if !stored.is_empty() => Key::Text(stored.to_owned()),
        _ => Key::Own(token),
    }
}

fn normalized(text: &str) -> String {
    let composed: String = text.nfkc().map(|(c, _)| c).collect();
    let bare = composed.nfd().map(|(c, _)| c).filter(|c| !is_combining_mark(*c));
    let spaced = one_space(bare.flat_map(char::to_lowercase));
    if spaced == " " {
        return spaced;
    }
    let key = spaced.trim().replace(STAND_IN, " ");
    if key.is_empty() { text.to_owned() } else { key }
}

fn one_space(chars: impl Iterator<Item = char>) -> String {
    let mut result = String::new();
    for c in chars {
        let c = if matches!(c, '\t' | '\r' | '\n') { ' ' } else { c };
        if c != ' ' || !result.ends_with(' ') {
            result.push(c);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(texts: &[Option<&str>]) -> Vec<u64> {
        TokenMap::new(&texts.iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>()).ids
    }

    /// Ids that the reference gives to these texts, in this order.
    const ODD: [(u64, &str); 78] = [
        (0, "The"),
        (0, " the"),
        (0, "THE\n"),
        (0, "  tHe \t"),
        (1, "\u{E9}"),
        (1, "e\u{301}"),
        (1, "E"),
        (1, "\u{C8}"),
        (2, "\u{FB01}"),
        (2, "FI"),
        (3, "\u{FF21}\u{FF42}"),
        (3, "ab"),
        (3, "ab\u{3000}"),
        (4, " "),
        (4, "\n"),
        (4, " \t\r\n  "),
        (4, "\u{3000}"),
        (4, "\u{A0}\u{2003}"),
        (4, "\u{E000}"),
        (5, "a\u{E000}b"),
        (5, "a \n b"),
        (5, "a\u{A0}b"),
        (6, ""),
        (7, "\u{301}"),
        (8, "\u{302}"),
        (9, "\u{301}\u{302}"),
        (10, "\u{B95}\u{BBE}"),
        (10, "\u{B95}"),
        (11, "\u{20DD}"),
        (12, "\u{85}"),
        (13, "\u{2028}"),
        (14, "\u{B}"),
        (15, "\u{B}a"),
        (15, "a"),
        (15, "a\u{2028}"),
        (16, "a\u{B}b"),
        (17, "\u{39F}\u{394}\u{39F}\u{3A3}"),
        (18, "\u{3BF}\u{3B4}\u{3BF}\u{3C2}"),
        (17, "\u{3BF}\u{3B4}\u{3BF}\u{3C3}"),
        (19, "\u{130}"),
        (19, "i"),
        (19, "I"),
        (20, "\u{131}"),
        (21, "\u{1E9E}"),
        (21, "\u{DF}"),
        (22, "ss"),
        (15, "\u{C5}"),
        (15, "\u{C5}"),
        (23, "\u{2460}"),
        (23, "1"),
        (24, "\u{FF76}\u{FF9E}"),
        (24, "\u{30AC}"),
        (24, "\u{30AB}"),
        (25, "\u{AC01}"),
        (25, "\u{AC01}"),
        (26, "\u{133}"),
        (26, "ij"),
        (27, "x\u{B2}"),
        (27, "x2"),
        (28, "\u{2026}"),
        (28, "..."),
        (29, "\u{FFFD}\u{E6}"),
        (29, "\u{C6}"),
        (29, "\u{E6}"),
        (30, "\u{FFFD}\u{143}a"),
        (31, "\u{144}a"),
        (31, "na"),
        (32, "\u{FFFD}\u{A2}"),
        (32, "\u{A2} "),
        (33, "\u{FFFD}\u{120}a"),
        (0, "\u{FFFD}the"),
        (34, "\u{1DFA}"),
        (35, "e\u{1ACF}"),
        (36, "\u{1E94D}\u{345}"),
        (4, "\u{37A}"),
        (37, "\u{1E9B}\u{323}"),
        (4, "\u{37A}"),
        (37, "s"),
    ];

    /// From mlx-vlm 0.7.10 (tokenizers 0.23.3): `build_compressed_token_map` of a stand-in tokenizer whose `decode` gives these texts and
    /// whose `id_to_token` gives what follows a U+FFFD.
    #[test]
    fn odd_texts_merge_as_in_the_reference() {
        let found = ids(&ODD.map(|(_, text)| Some(text)));
        for ((expected, text), found) in ODD.into_iter().zip(found) {
            assert_eq!(found, expected, "{text:?}");
        }
    }

    /// A text that is not of that form merges with nothing.
    #[test]
    fn undecodable_tokens_keep_ids_of_their_own() {
        assert_eq!(ids(&[None, Some("a"), None, Some("\u{FFFD}"), Some("A"), Some("\u{FFFD}"), Some("a\u{FFFD}")]), [0, 1, 2, 3, 1, 4, 5]);
        assert_eq!(TokenMap::new(&[]).size(), 0);
        assert_eq!(TokenMap::new(&[None]).get(1), None);
    }
}
