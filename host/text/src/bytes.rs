//! Byte-level vocabularies: each character of a token stands for one byte, so a token may end in the middle of a character of the text.

/// The byte that a character of a byte-level token stands for. Bytes with a visible character of their own in Latin-1 stand for
/// themselves; the others are numbered from 256 on, in order.
fn byte_of(character: char) -> Option<u8> {
    match character {
        '!'..='~' | '\u{a1}'..='\u{ac}' | '\u{ae}'..='\u{ff}' => u8::try_from(u32::from(character)).ok(),
        _ => match u8::try_from(u32::from(character).checked_sub(256)?).ok()? {
            low @ 0..=32 => Some(low),
            middle @ 33..=66 => Some(middle - 33 + 127),
            67 => Some(0xad),
            _ => None,
        },
    }
}

/// The bytes of a token. A token with a character that stands for no byte, such as an added one, is its own text.
pub(crate) fn of_token(token: &str) -> Vec<u8> {
    token.chars().map(byte_of).collect::<Option<Vec<u8>>>().unwrap_or_else(|| token.as_bytes().to_vec())
}

/// Bytes that have come and are not yet a whole character: at most 3.
#[derive(Debug, Clone, Default)]
pub(crate) struct Utf8Tail(Vec<u8>);

impl Utf8Tail {
    /// The text that is final after these bytes. What can never become a character is U+FFFD, one for each broken sequence.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.0.extend(bytes);
        let mut text = String::new();
        let mut rest = self.0.as_slice();
        // Each chunk is valid text followed by one broken sequence; the last chunk's may still be completed.
        for chunk in self.0.utf8_chunks() {
            text.push_str(chunk.valid());
            rest = &rest[chunk.valid().len()..];
            let broken = chunk.invalid();
            let open = broken.len() == rest.len() && may_continue(broken);
            if broken.is_empty() || open {
                break;
            }
            text.push(char::REPLACEMENT_CHARACTER);
            rest = &rest[broken.len()..];
        }
        self.0 = rest.to_vec();
        text
    }

    /// What is left when no more comes.
    pub(crate) fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.0)).into_owned()
    }
}

/// Whether more bytes could make a character of these, which are not one.
fn may_continue(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_byte_has_one_character() {
        let mut characters = [None; 256];
        for character in (0..400).filter_map(char::from_u32) {
            if let Some(byte) = byte_of(character) {
                assert_eq!(characters[byte as usize].replace(character), None);
            }
        }
        assert!(characters.iter().all(Option::is_some));
        assert_eq!((byte_of('Ġ'), byte_of('Ċ'), byte_of('a'), byte_of(' ')), (Some(b' '), Some(b'\n'), Some(b'a'), None));
    }

    #[test]
    fn a_token_that_is_not_byte_level_is_its_own_text() {
        assert_eq!(of_token("ĠÃ©"), b" \xc3\xa9");
        assert_eq!(of_token("<tool call>"), b"<tool call>");
    }

    proptest! {
        #[test]
        fn any_cut_of_any_bytes_is_the_same_text(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), 0x80u8..0xc0, 0xe0u8..0xf5], 0..40),
            size in 1usize..5,
        ) {
            let mut tail = Utf8Tail::default();
            let mut text = String::new();
            for piece in bytes.chunks(size) {
                text += &tail.push(piece);
                prop_assert!(tail.0.len() <= 3);
            }
            text += &tail.finish();
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
        }
    }
}
