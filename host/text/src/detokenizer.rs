//! Ids to text, as they come: text that is given out is final and never ends inside a character.
//!
//! All that is given out is what the tokenizer makes of all ids at once, where that is valid text. The work for an id does not grow with
//! the ids before it, and at most 3 bytes (4 ids with a decoder of byte tokens) are held back.

use coli_base::Result;
use tokenizers::DecoderWrapper;

use crate::bytes::{self, Utf8Tail};
use crate::tokenizer::Tokenizer;
use crate::window::Window;

/// One text in the making.
#[derive(Debug, Clone)]
pub struct Detokenizer {
    tokenizer: Tokenizer,
    state: State,
}

#[derive(Debug, Clone)]
enum State {
    /// Tokens are bytes, whatever stands beside them.
    Bytes(Utf8Tail),
    /// Everything else.
    Window(Window),
}

impl Detokenizer {
    pub(crate) fn new(tokenizer: Tokenizer) -> Self {
        let state = if tokenizer.inner().get_decoder().is_some_and(is_byte_level) {
            State::Bytes(Utf8Tail::default())
        } else {
            State::Window(Window::default())
        };
        Self { tokenizer, state }
    }

    /// The text that is final after `id`; empty for special tokens, ids that the tokenizer does not know, and parts of a character.
    pub fn push(&mut self, id: u32) -> Result<String> {
        let inner = self.tokenizer.inner();
        let Some(token) = inner.id_to_token(id).filter(|token| !inner.get_added_vocabulary().is_special_token(token)) else {
            return Ok(String::new());
        };
        match &mut self.state {
            State::Bytes(tail) => Ok(tail.push(&bytes::of_token(&token))),
            State::Window(window) => window.push(&self.tokenizer, id),
        }
    }

    /// What is left when no more ids come: a character that was not completed is U+FFFD.
    pub fn finish(mut self) -> Result<String> {
        match &mut self.state {
            State::Bytes(tail) => Ok(tail.finish()),
            State::Window(window) => window.finish(&self.tokenizer),
        }
    }
}

/// Whether the decoder only maps characters to bytes; joining the result changes nothing.
fn is_byte_level(decoder: &DecoderWrapper) -> bool {
    match decoder {
        DecoderWrapper::ByteLevel(_) => true,
        DecoderWrapper::Sequence(sequence) => {
            let mut rest = sequence.get_decoders().iter().filter(|decoder| !matches!(decoder, DecoderWrapper::Fuse(_)));
            matches!((rest.next(), rest.next()), (Some(DecoderWrapper::ByteLevel(_)), None))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{byte_fallback, demo, demo_cases, metaspace, open, word_piece};
    use proptest::prelude::*;

    /// The pieces that the ids give one by one, the last one from `finish`.
    fn pieces(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<String> {
        let mut detokenizer = tokenizer.detokenizer();
        let mut pieces: Vec<String> = ids.iter().map(|&id| detokenizer.push(id).unwrap()).collect();
        pieces.push(detokenizer.finish().unwrap());
        pieces
    }

    fn streamed(tokenizer: &Tokenizer, ids: &[u32]) -> String {
        pieces(tokenizer, ids).concat()
    }

    fn id(tokenizer: &Tokenizer, token: &str) -> u32 {
        tokenizer.inner().token_to_id(token).unwrap()
    }

    #[test]
    fn the_demo_texts_are_streamed() {
        let tokenizer = demo();
        for case in demo_cases() {
            assert_eq!(streamed(&tokenizer, &case.tokens), case.text);
            assert_eq!(streamed(&tokenizer, &case.prompt_ids), case.prompt);
        }
    }

    #[test]
    fn no_piece_ends_inside_a_character() {
        let tokenizer = demo();
        for text in ["naïve 👩‍👩‍👧 café", "漢字かな交じり文", "\u{10ffff}a\u{301}", " leading and trailing ", "\n\n\t", "�"]
        {
            let ids = tokenizer.encode(text).unwrap();
            let pieces = pieces(&tokenizer, &ids);
            assert_eq!(pieces.concat(), text);
            assert_eq!(pieces.last().unwrap(), "", "all characters are complete");
            assert!(text == "�" || pieces.iter().all(|piece| !piece.contains('�')), "{pieces:?}");
        }
    }

    #[test]
    fn special_and_unknown_ids_have_no_text() {
        let tokenizer = demo();
        let word = tokenizer.encode("漢").unwrap();
        assert_eq!(word.len(), 3);
        assert_eq!(streamed(&tokenizer, &[0, word[0], 1, word[1], 9_999_999, word[2], 0]), "漢");
    }

    #[test]
    fn broken_bytes_are_not_held_back() {
        let tokenizer = demo();
        let byte = |c: &str| id(&tokenizer, c);
        // The byte 0xff never starts a character.
        assert_eq!(pieces(&tokenizer, &[byte("ÿ"), byte("a"), byte("ÿ")]), ["�", "a", "�", ""]);
        assert_eq!(pieces(&tokenizer, &[byte("æ"), byte("a")]), ["", "�a", ""]);
        assert_eq!(pieces(&tokenizer, &[byte("æ"), byte("¼")]), ["", "", "�"]);
    }

    #[test]
    fn only_the_first_space_of_a_text_is_dropped() {
        for json in [metaspace(), byte_fallback()] {
            let tokenizer = open(&json);
            for text in ["ab ab", "a", "  ab   ab ", "ab\u{a0}b"] {
                let ids = tokenizer.encode(text).unwrap();
                assert_eq!(streamed(&tokenizer, &ids), tokenizer.decode(&ids).unwrap(), "{text:?}");
            }
            let [space, ab, eos] = ["▁", "▁ab", "</s>"].map(|token| id(&tokenizer, token));
            for ids in [vec![eos, ab, ab], vec![ab, eos, eos, ab], vec![space, space, ab, space, ab], vec![ab; 50]] {
                assert_eq!(streamed(&tokenizer, &ids), tokenizer.decode(&ids).unwrap(), "{ids:?}");
            }
            assert_eq!(pieces(&tokenizer, &[ab, eos, ab]), ["ab", "", " ab", ""]);
        }
    }

    #[test]
    fn byte_tokens_become_characters() {
        let tokenizer = open(&byte_fallback());
        let bytes = |bytes: &[u8]| bytes.iter().map(|byte| id(&tokenizer, &format!("<0x{byte:02X}>"))).collect::<Vec<_>>();
        let text = "é漢字👩‍👧 é".repeat(20);
        let ids = bytes(text.as_bytes());
        assert_eq!(streamed(&tokenizer, &ids), text);
        assert_eq!(pieces(&tokenizer, &ids[..6]), ["", "é", "", "", "漢", "", "�"]);
        let ab = id(&tokenizer, "▁ab");
        let broken = [bytes(&[0xe6, 0xbc]), vec![ab], bytes("漢".as_bytes()), vec![ab]].concat();
        assert_eq!(pieces(&tokenizer, &broken), ["", "", "�� ab", "", "", "漢", " ab", ""]);
        // Broken without end: no more than four ids are held, and text goes on after them.
        let broken = [bytes(&[0xff; 9]), bytes("漢".as_bytes()), vec![ab]].concat();
        let text = streamed(&tokenizer, &broken);
        assert!(text.starts_with("���������") && text.trim_end().ends_with("ab"), "{text}");
        assert_eq!(pieces(&tokenizer, &broken)[3], "����");
    }

    #[test]
    fn word_pieces_are_joined() {
        let tokenizer = open(&word_piece());
        let ids = ["ab", "##c", "ab", "."].map(|token| id(&tokenizer, token));
        assert_eq!(streamed(&tokenizer, &ids), tokenizer.decode(&ids).unwrap());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn any_ids_of_the_demo_stream_to_their_text(ids in proptest::collection::vec(prop_oneof![0u32..260, 0u32..4100], 0..60)) {
            let tokenizer = demo();
            prop_assert_eq!(streamed(&tokenizer, &ids), tokenizer.decode(&ids).unwrap());
        }

        #[test]
        fn any_ids_of_other_decoders_stream_to_their_valid_text(
            ids in proptest::collection::vec(0u32..300, 0..60),
            ascii in any::<bool>(),
        ) {
            for json in [metaspace(), byte_fallback(), word_piece()] {
                let tokenizer = open(&json);
                let size = tokenizer.vocab_len() as u32;
                // Byte tokens above 0x7f are seldom valid when drawn at random.
                let ids: Vec<u32> = ids.iter().map(|id| if ascii { id % size.min(140) } else { id % size }).collect();
                let whole = tokenizer.decode(&ids).unwrap();
                let stream = streamed(&tokenizer, &ids);
                if !whole.contains('�') {
                    prop_assert_eq!(stream, whole);
                }
            }
        }
    }
}
