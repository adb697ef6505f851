//! Tokenizers for this crate's tests: the demo model's, and tiny ones with the decoders of other families.

use std::path::Path;
use std::sync::LazyLock;

use coli_base::Result;
use serde_json::{Value, json};

use crate::tokenizer::Tokenizer;

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/olmoe/demo");

pub(crate) fn demo() -> Tokenizer {
    static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| Tokenizer::open(Path::new(DEMO)).unwrap());
    TOKENIZER.clone()
}

/// A case of the demo model's reference.
pub(crate) struct DemoCase {
    pub(crate) prompt: String,
    pub(crate) prompt_ids: Vec<u32>,
    pub(crate) tokens: Vec<u32>,
    pub(crate) text: String,
}

pub(crate) fn demo_cases() -> Vec<DemoCase> {
    let bytes = std::fs::read(Path::new(DEMO).join("reference.json")).unwrap();
    let reference: Value = serde_json::from_slice(&bytes).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let ids = |value: &Value| value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect();
    let cases = reference["cases"].as_array().unwrap().iter();
    cases
        .map(|case| DemoCase {
            prompt: text(&case["prompt"]),
            prompt_ids: ids(&case["prompt_ids"]),
            tokens: ids(&case["tokens"]),
            text: text(&case["text"]),
        })
        .collect()
}

/// Opens a folder with this `tokenizer.json`.
pub(crate) fn parse(text: &str) -> Result<Tokenizer> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("tokenizer.json"), text).unwrap();
    Tokenizer::open(dir.path())
}

pub(crate) fn open(json: &Value) -> Tokenizer {
    parse(&json.to_string()).unwrap()
}

fn added(id: u32, content: &str) -> Value {
    json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})
}

/// A SentencePiece unigram model: pieces with a mark for the space before a word, the first of which is dropped.
pub(crate) fn metaspace() -> Value {
    let scored = ["<unk>", "<s>", "</s>", "▁", "a", "b", "ab", "▁ab", "▁a", "\u{a0}", "漢"].map(|piece| json!([piece, -1.0]));
    let space = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true});
    json!({
        "version": "1.0", "added_tokens": [added(1, "<s>"), added(2, "</s>")],
        "pre_tokenizer": space, "decoder": space,
        "model": {"type": "Unigram", "unk_id": 0, "vocab": scored, "byte_fallback": false}
    })
}

/// A SentencePiece BPE model whose unknown characters are byte tokens; ids 11 to 266 are the bytes.
pub(crate) fn byte_fallback() -> Value {
    let pieces = ["<unk>", "<s>", "</s>", "▁", "a", "b", "ab", "▁ab", "▁a", "\u{a0}", "c"].map(str::to_owned);
    let tokens = pieces.into_iter().chain((0..=255).map(|byte| format!("<0x{byte:02X}>")));
    let vocab: serde_json::Map<String, Value> = tokens.zip(0..).map(|(token, id): (String, u32)| (token, id.into())).collect();
    json!({
        "version": "1.0", "added_tokens": [added(1, "<s>"), added(2, "</s>")],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true, "vocab": vocab,
            "merges": [["a", "b"], ["▁", "ab"], ["▁", "a"]]}
    })
}

/// A model whose pieces are joined to the piece before.
pub(crate) fn word_piece() -> Value {
    json!({
        "version": "1.0", "added_tokens": [],
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
            "vocab": {"[UNK]": 0, "ab": 1, "##c": 2, ".": 3, "'": 4, "s": 5}}
    })
}
