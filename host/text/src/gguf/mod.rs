//! A tokenizer from the metadata of a GGUF file: the same ids as from the `tokenizer.json` that the file was made of.
//!
//! Three models are known, named as the file names them: `gpt2`, merges over bytes ([`pre`] has the families); `llama`, SentencePiece's
//! merges by score, and `t5`, its unigram model (both in `pieces`). What a file leaves open is decided as llama.cpp decides it:
//!
//! | | bos, eos, unk | a text begins with bos | ends with eos | a space is put before it |
//! |---|---|---|---|---|
//! | `gpt2` | none | where the family does (`llama-bpe`, `tekken`) | no | never |
//! | `llama` | 1, 2, 0 | yes | no | yes |
//! | `t5` | none, 1, 2 | no | yes | no |
//!
//! Files do not say three things, so a tokenizer can differ from its `tokenizer.json` there: whether an added token takes the spaces
//! beside it along, whether it is looked for after normalization (here: before), and whether the space is put before the first piece of a
//! text only (here: before each piece between two added tokens, as llama.cpp does).

mod pieces;
mod pre;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use coli_base::{Error, Result, memory};
use serde_json::{Map, Value, json};
use tokenizers::decoders::byte_level::ByteLevel;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::{AddedToken, ModelWrapper, PostProcessorWrapper};

use crate::tokenizer::{IDS_MAX, Tokenizer, guarded};
use pre::Family;

/// The longest known token has some hundred bytes. Work and stack grow with it.
const TOKEN_BYTES_MAX: usize = 4096;
/// More than the crate's tables take for each byte of text and for each token or merge while they are built.
const MEMORY_PER_BYTE: u64 = 12;
const MEMORY_PER_ENTRY: u64 = 400;

/// What the metadata of a GGUF file says of its tokenizer, key by key; nothing of it is checked yet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GgufTokenizer {
    /// `tokenizer.ggml.model`: `gpt2`, `llama`, `t5`.
    pub model: String,
    /// `tokenizer.ggml.pre`: how `gpt2` cuts words.
    pub pre: Option<String>,
    /// `tokenizer.ggml.tokens`: the texts by id.
    pub tokens: Vec<String>,
    /// `tokenizer.ggml.scores`: none, or one for each token.
    pub scores: Vec<f32>,
    /// `tokenizer.ggml.token_type`: none, or one for each token.
    pub token_types: Vec<i32>,
    /// `tokenizer.ggml.merges`: pairs with a space between, the first one first.
    pub merges: Vec<String>,
    /// `tokenizer.ggml.bos_token_id`.
    pub bos: Option<u32>,
    /// `tokenizer.ggml.eos_token_id`.
    pub eos: Option<u32>,
    /// `tokenizer.ggml.eot_token_id`: it ends a turn.
    pub eot: Option<u32>,
    /// `tokenizer.ggml.eom_token_id`: it ends a message.
    pub eom: Option<u32>,
    /// `tokenizer.ggml.unknown_token_id`.
    pub unk: Option<u32>,
    /// `tokenizer.ggml.padding_token_id`.
    pub pad: Option<u32>,
    /// `tokenizer.ggml.add_bos_token`.
    pub add_bos: Option<bool>,
    /// `tokenizer.ggml.add_eos_token`.
    pub add_eos: Option<bool>,
    /// `tokenizer.ggml.add_space_prefix`.
    pub add_space_prefix: Option<bool>,
    /// `tokenizer.ggml.remove_extra_whitespaces`, of `t5`.
    pub remove_extra_whitespaces: Option<bool>,
    /// `tokenizer.ggml.precompiled_charsmap`, of `t5`; empty where there is none.
    pub charsmap: Vec<u8>,
    /// `tokenizer.chat_template`.
    pub chat_template: Option<String>,
}

/// What a token is for; the numbers in a file are 1 to 6, and 0 where it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

impl Tokenizer {
    /// The tokenizer that a GGUF file describes.
    pub fn from_gguf(gguf: &GgufTokenizer) -> Result<Self> {
        gguf.check()?;
        let entries = gguf.tokens.len() as u64 + gguf.merges.len() as u64;
        let bytes: u64 = gguf.tokens.iter().chain(&gguf.merges).map(|text| text.len() as u64).sum();
        memory::probe(MEMORY_PER_BYTE * bytes + MEMORY_PER_ENTRY * entries, "build the tokenizer")?;
        let (mut inner, bos) = match gguf.model.as_str() {
            "gpt2" => byte_level(gguf)?,
            "llama" => (pieces::merges_by_score(gguf)?, true),
            "t5" => (pieces::unigram(gguf)?, false),
            other => return Err(Error::refused(format!("tokenizer.ggml.model is `{other}`; coli knows gpt2, llama, t5"))),
        };
        guarded(|| inner.add_tokens(gguf.added()))?;
        let ends = [("bos", gguf.add_bos.unwrap_or(bos), gguf.bos()), ("eos", gguf.add_eos.unwrap_or(gguf.model == "t5"), gguf.eos())];
        inner.with_post_processor(post_processor(gguf, ends)?);
        Ok(Self(Arc::new(inner)))
    }
}

impl GgufTokenizer {
    fn check(&self) -> Result<()> {
        let count = self.tokens.len();
        if count == 0 || count > IDS_MAX as usize {
            return Err(Error::refused(format!("tokenizer.ggml.tokens: {count} tokens, expected 1 to {IDS_MAX}")));
        }
        for (key, len) in [("scores", self.scores.len()), ("token_type", self.token_types.len())] {
            if len != 0 && len != count {
                return Err(Error::refused(format!("tokenizer.ggml.{key}: {len} values for {count} tokens")));
            }
        }
        if let Some(id) = self.scores.iter().position(|score| !score.is_finite()) {
            return Err(Error::refused(format!("tokenizer.ggml.scores: {} for token {id}", self.scores[id])));
        }
        if let Some(id) = self.token_types.iter().position(|kind| !(0..=6).contains(kind)) {
            return Err(Error::refused(format!("tokenizer.ggml.token_type: {} for token {id}, expected 0 to 6", self.token_types[id])));
        }
        let ids =
            [("bos", self.bos), ("eos", self.eos), ("eot", self.eot), ("eom", self.eom), ("unknown", self.unk), ("padding", self.pad)];
        for (name, id) in ids {
            if let Some(id) = id.filter(|&id| id as usize >= count) {
                return Err(Error::refused(format!("tokenizer.ggml.{name}_token_id: {id}, but there are {count} tokens")));
            }
        }
        let mut seen = HashSet::with_capacity(count);
        for (id, text) in self.tokens.iter().enumerate() {
            if text.len() > TOKEN_BYTES_MAX {
                let bytes = text.len();
                return Err(Error::refused(format!(
                    "tokenizer.ggml.tokens: token {id} has {bytes} bytes, expected at most {TOKEN_BYTES_MAX}"
                )));
            }
            if self.is_live(id) && !seen.insert(text.as_str()) {
                return Err(Error::refused(format!("tokenizer.ggml.tokens: token {id}, `{}`, is there twice", text.escape_debug())));
            }
        }
        Ok(())
    }

    fn usage(&self, id: usize) -> Use {
        match self.token_types.get(id) {
            Some(2) => Use::Unknown,
            Some(3) => Use::Control,
            Some(4) => Use::UserDefined,
            Some(5) => Use::Unused,
            Some(6) => Use::Byte,
            _ => Use::Normal,
        }
    }

    /// Whether a text can have this token.
    fn is_live(&self, id: usize) -> bool {
        self.usage(id) != Use::Unused && !self.tokens[id].is_empty()
    }

    /// The tokens that a text can have, with their ids.
    fn live(&self) -> impl Iterator<Item = (u32, &str)> {
        let tokens = (0u32..).zip(self.tokens.iter().map(String::as_str));
        tokens.filter(|&(id, _)| self.is_live(id as usize))
    }

    /// The tokens that are found in a text before anything else.
    fn added(&self) -> Vec<AddedToken> {
        let added = |(id, text): (u32, &str)| {
            let special = match self.usage(id as usize) {
                Use::Control | Use::Unknown => true,
                Use::UserDefined => false,
                Use::Normal | Use::Unused | Use::Byte => return None,
            };
            Some(AddedToken::from(text, special).normalized(false))
        };
        self.live().filter_map(added).collect()
    }

    /// An id that the file gives, else its model's where there is such a token.
    fn or_usual(&self, given: Option<u32>, llama: Option<u32>, t5: Option<u32>) -> Option<u32> {
        let usual = match self.model.as_str() {
            "llama" => llama,
            "t5" => t5,
            _ => None,
        };
        given.or(usual).filter(|&id| (id as usize) < self.tokens.len())
    }

    pub(crate) fn bos(&self) -> Option<u32> {
        self.or_usual(self.bos, Some(1), None)
    }

    pub(crate) fn eos(&self) -> Option<u32> {
        self.or_usual(self.eos, Some(2), Some(1))
    }

    pub(crate) fn unk(&self) -> Option<u32> {
        self.or_usual(self.unk, Some(0), Some(2))
    }

    pub(crate) fn text(&self, id: Option<u32>) -> Option<&str> {
        self.tokens.get(id? as usize).map(String::as_str)
    }
}

/// Merges over bytes that are written as characters; and whether its family begins texts with bos.
fn byte_level(gguf: &GgufTokenizer) -> Result<(tokenizers::Tokenizer, bool)> {
    let family = Family::named(gguf.pre.as_deref())?;
    if gguf.merges.is_empty() {
        return Err(Error::refused("tokenizer.ggml.merges is missing or empty"));
    }
    let vocab: Vocab = gguf.live().map(|(id, text)| (text.to_owned(), id)).collect();
    let pair = |(at, text): (usize, &String)| {
        let pair = text.split_once(' ').filter(|(left, right)| !left.is_empty() && !right.is_empty() && !right.contains(' '));
        let known = pair.filter(|(left, right)| [*left, *right, &format!("{left}{right}")].iter().all(|part| vocab.contains_key(*part)));
        let (left, right) = known.ok_or_else(|| {
            let text = text.escape_debug();
            Error::refused(format!("tokenizer.ggml.merges: merge {at}, `{text}`, is no pair of tokens that make a token"))
        })?;
        Ok((left.to_owned(), right.to_owned()))
    };
    let merges: Vec<(String, String)> = gguf.merges.iter().enumerate().map(pair).collect::<Result<_>>()?;
    let model = guarded(|| BPE::builder().vocab_and_merges(vocab, merges).ignore_merges(family.whole_words).build())?;
    let mut inner = tokenizers::Tokenizer::new(ModelWrapper::BPE(model));
    guarded(|| inner.with_normalizer(family.normalizer()).map(|_| ()))?;
    inner.with_pre_tokenizer(Some(family.pre_tokenizer()?));
    inner.with_decoder(Some(ByteLevel::default()));
    Ok((inner, family.bos))
}

/// What puts bos and eos around a text.
fn post_processor(gguf: &GgufTokenizer, ends: [(&str, bool, Option<u32>); 2]) -> Result<Option<PostProcessorWrapper>> {
    let mut tokens = Map::new();
    let mut piece = |(name, wanted, id): (&str, bool, Option<u32>)| -> Result<Option<Value>> {
        if !wanted {
            return Ok(None);
        }
        let (id, text) = id
            .and_then(|id| Some((id, gguf.text(Some(id))?)))
            .ok_or_else(|| Error::refused(format!("tokenizer.ggml.add_{name}_token: there is no {name}_token_id")))?;
        tokens.insert(name.into(), json!({"id": name, "ids": [id], "tokens": [text]}));
        Ok(Some(json!({"SpecialToken": {"id": name, "type_id": 0}})))
    };
    let [bos, eos] = ends;
    let (first, last) = (piece(bos)?, piece(eos)?);
    if tokens.is_empty() {
        return Ok(None);
    }
    let text = |id: &str, kind: u32| json!({"Sequence": {"id": id, "type_id": kind}});
    let single: Vec<Value> = first.into_iter().chain([text("A", 0)]).chain(last).collect();
    let pair = [text("A", 0), text("B", 1)];
    let template = json!({"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens});
    let built = serde_json::from_value(template).map_err(|error| Error::refused(format!("bos and eos of the tokenizer: {error}")))?;
    Ok(Some(built))
}
