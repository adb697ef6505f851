//! A model's tokenizer, run by the `tokenizers` crate: read from `tokenizer.json` here, made of a GGUF file's metadata in `gguf`.

use std::path::Path;
use std::sync::Arc;

use coli_base::{Error, Result, files, memory, quiet};
use tokenizers::ModelWrapper;

use crate::detokenizer::Detokenizer;

const FILE: &str = "tokenizer.json";
/// The largest published one is a sixth of this.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// Token ids; the largest known vocabulary is an eighth of it.
pub(crate) const IDS_MAX: u32 = 1 << 21;
/// What the crate's tables take for each byte of the file while it is read; the demo model's take a good half of this.
const MEMORY_PER_BYTE: u64 = 16;

/// Turns text into token ids and back.
#[derive(Debug, Clone)]
pub struct Tokenizer(pub(crate) Arc<tokenizers::Tokenizer>);

impl Tokenizer {
    /// Opens the tokenizer of the model in `dir`.
    pub fn open(dir: &Path) -> Result<Self> {
        let path = dir.join(FILE);
        let shown = path.display();
        let missing = || Error::refused(format!("`{shown}` is missing"));
        let json = files::read_bounded(&path, FILE_BYTES_MAX)?.ok_or_else(missing)?;
        memory::probe(MEMORY_PER_BYTE * json.len() as u64, &format!("open `{shown}`"))?;
        let mut inner =
            guarded(|| tokenizers::Tokenizer::from_bytes(&json)).map_err(|error| Error::refused(format!("`{shown}`: {}", error.text)))?;
        // A file may carry the limits of its training: they would silently shorten or lengthen a prompt.
        inner.with_padding(None);
        inner.with_truncation(None).map_err(|error| Error::refused(format!("`{shown}`: {error}")))?;
        drop_dropout(&mut inner);
        Ok(Self(Arc::new(inner)))
    }

    /// The ids of `text`, with the special tokens that the model's post-processor adds.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        self.ids(text, true)
    }

    /// The ids of a text that has the model's special tokens in it already, as one from a chat template does.
    pub fn encode_rendered(&self, text: &str) -> Result<Vec<u32>> {
        self.ids(text, false)
    }

    fn ids(&self, text: &str, special: bool) -> Result<Vec<u32>> {
        let encoding = guarded(|| self.0.encode_fast(text, special)).map_err(|error| error.within("tokenizing"))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// How many tokens there are, added ones too. Ids may have gaps, so this is not one more than the largest.
    pub fn vocab_len(&self) -> usize {
        self.0.get_vocab_size(true)
    }

    /// Turns ids into text as they come; special tokens are left out.
    pub fn detokenizer(&self) -> Detokenizer {
        Detokenizer::new(self.clone())
    }

    /// The text of each token id by itself, special tokens too. A token whose bytes are no whole characters has U+FFFD and its spelling in
    /// the file; an id without a token has no characters.
    pub fn texts(&self) -> Result<Vec<Option<String>>> {
        let last = self.0.get_vocab(true).into_values().max();
        if let Some(id) = last.filter(|id| *id >= IDS_MAX) {
            return Err(Error::refused(format!("`{FILE}`: token id {id}, expected less than {IDS_MAX}")));
        }
        let text = |id: u32| -> Result<Option<String>> {
            let Some(token) = self.0.id_to_token(id) else { return Ok(Some(String::new())) };
            let text = guarded(|| self.0.decode(&[id], false)).map_err(|error| error.within("detokenizing"))?;
            let whole = !text.contains(char::REPLACEMENT_CHARACTER);
            Ok(Some(if whole { text } else { format!("{}{token}", char::REPLACEMENT_CHARACTER) }))
        };
        (0..last.map_or(0, |id| id + 1)).map(text).collect()
    }

    pub(crate) fn inner(&self) -> &tokenizers::Tokenizer {
        &self.0
    }

    /// The text of all `ids` at once, without special tokens.
    pub(crate) fn decode(&self, ids: &[u32]) -> Result<String> {
        guarded(|| self.0.decode(ids, true)).map_err(|error| error.within("detokenizing"))
    }
}

/// Switches off the random splitting of a training: the same text must give the same ids.
fn drop_dropout(inner: &mut tokenizers::Tokenizer) {
    if let ModelWrapper::BPE(model) = inner.get_model()
        && model.dropout.is_some()
    {
        let mut model = model.clone();
        model.dropout = None;
        inner.with_model(model);
    }
}

/// Calls into the crate, whose parts trust what the file says of them: a panic there is the file's error, not ours.
pub(crate) fn guarded<T>(call: impl FnOnce() -> tokenizers::Result<T>) -> Result<T> {
    match quiet::catch(call) {
        Some(result) => result.map_err(|error| Error::refused(error.to_string())),
        None => Err(Error::refused("the tokenizer failed; its file contradicts itself")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{byte_fallback, demo, demo_cases, open, parse};
    use coli_base::Kind;

    #[test]
    fn every_id_has_its_text() {
        let tokenizer = demo();
        let texts = tokenizer.texts().unwrap();
        assert_eq!(texts.len(), tokenizer.vocab_len());
        let broken = |text: &String| text.starts_with(char::REPLACEMENT_CHARACTER);
        let mut spelled = 0;
        for (id, text) in (0..).zip(texts.iter().flatten()) {
            if broken(text) {
                spelled += 1;
                assert_eq!(text.trim_start_matches(char::REPLACEMENT_CHARACTER), tokenizer.inner().id_to_token(id).unwrap());
            } else if !text.is_empty() {
                assert!(tokenizer.decode(&[id]).unwrap() == *text || tokenizer.decode(&[id]).unwrap().is_empty(), "{id}");
            }
        }
        // The bytes from 128 on, and pairs and triples of them that are a part of a character.
        assert!(spelled >= 128, "{spelled}");
    }

    #[test]
    fn the_demo_prompts_have_their_ids() {
        let tokenizer = demo();
        assert_eq!(tokenizer.vocab_len(), 4096);
        let cases = demo_cases();
        assert_eq!(cases.len(), 50);
        for case in cases {
            assert_eq!(tokenizer.encode(&case.prompt).unwrap(), case.prompt_ids, "{}", case.prompt);
        }
        assert!(tokenizer.encode("").unwrap().is_empty());
    }

    #[test]
    fn a_missing_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = Tokenizer::open(dir.path()).unwrap_err();
        assert_eq!(error.kind, Kind::Refused);
        assert!(error.text.ends_with("tokenizer.json` is missing"), "{error}");
    }

    #[test]
    fn an_id_beyond_reason_is_named() {
        for id in [IDS_MAX, u32::MAX - 1, u32::MAX] {
            let mut json = byte_fallback();
            json["model"]["vocab"]["far"] = id.into();
            let error = open(&json).texts().unwrap_err();
            assert_eq!(error, Error::refused(format!("`tokenizer.json`: token id {id}, expected less than 2097152")));
        }
    }

    #[test]
    fn a_bad_file_is_one_line() {
        for text in ["", "{", "[]", "{}", r#"{"model":{"type":"BPE","vocab":{},"merges":[["a","b"]]}}"#, "\u{0}"] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.kind, Kind::Refused);
            assert!(error.text.contains("tokenizer.json") && !error.text.contains('\n'), "{error}");
        }
    }

    #[test]
    fn special_tokens_are_added_and_limits_are_not_kept() {
        let mut json = byte_fallback();
        json["post_processor"] = serde_json::json!({
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}
        });
        json["truncation"] = serde_json::json!({"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0});
        let padding = serde_json::json!({"strategy": {"Fixed": 100}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0});
        json["padding"] = padding;
        json["padding"]["pad_type_id"] = 0.into();
        json["padding"]["pad_token"] = "<unk>".into();
        let ids = open(&json).encode("ab ab").unwrap();
        assert_eq!(ids[0], 1);
        let rendered = open(&json).encode_rendered("<s>ab ab").unwrap();
        assert_eq!(rendered[0], 1);
        assert_ne!(rendered[1], 1, "a special token that is there is not added once more");
        assert_eq!(open(&json).encode_rendered("ab ab").unwrap(), ids[1..]);
        assert!(ids.len() > 2 && ids.len() < 100, "{ids:?}");
    }

    #[test]
    fn dropout_of_a_training_is_switched_off() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/olmoe/demo/tokenizer.json");
        let mut json: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        json["model"]["dropout"] = 0.9.into();
        let (tokenizer, plain) = (open(&json), demo());
        for case in demo_cases() {
            assert_eq!(tokenizer.encode(&case.prompt).unwrap(), plain.encode(&case.prompt).unwrap());
        }
    }

    #[test]
    fn a_panic_inside_is_an_error() {
        let error = guarded::<()>(|| panic!("on purpose")).unwrap_err();
        assert!(error.text.contains("contradicts itself"));
    }
}
