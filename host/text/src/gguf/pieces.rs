//! SentencePiece's two models: pieces with U+2581 for a space.

use std::collections::HashMap;

use coli_base::{Error, Result};
use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::sequence::Sequence as Decoders;
use tokenizers::decoders::strip::Strip;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::models::unigram::Unigram;
use tokenizers::normalizers::{Precompiled, Prepend, Replace, Sequence as Normalizers};
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::pre_tokenizers::sequence::Sequence as Cuts;
use tokenizers::pre_tokenizers::whitespace::WhitespaceSplit;
use tokenizers::{DecoderWrapper, ModelWrapper, NormalizerWrapper, PreTokenizerWrapper};

use super::{GgufTokenizer, Use};
use crate::tokenizer::guarded;

const SPACE: char = '\u{2581}';

/// Pieces are joined where a piece of a better score comes of it.
pub(super) fn merges_by_score(gguf: &GgufTokenizer) -> Result<tokenizers::Tokenizer> {
    need_scores(gguf)?;
    let ids: HashMap<&str, u32> = gguf.live().map(|(id, text)| (text, id)).collect();
    let vocab: Vocab = ids.iter().map(|(text, id)| ((*text).to_owned(), *id)).collect();
    let mut builder = BPE::builder().vocab_and_merges(vocab, merges(gguf, &ids)).fuse_unk(true).byte_fallback(has_bytes(gguf));
    if let Some(unk) = gguf.text(gguf.unk()).filter(|text| ids.contains_key(text)) {
        builder = builder.unk_token(unk.to_owned());
    }
    let mut inner = tokenizers::Tokenizer::new(ModelWrapper::BPE(guarded(|| builder.build())?));
    let prefix = gguf.add_space_prefix.unwrap_or(true);
    let mut normalizers = Vec::new();
    if prefix {
        normalizers.push(NormalizerWrapper::Prepend(Prepend::new(SPACE.into())));
    }
    normalizers.push(NormalizerWrapper::Replace(guarded(|| Replace::new(" ", SPACE))?));
    guarded(|| inner.with_normalizer(Some(Normalizers::new(normalizers))).map(|_| ()))?;
    inner.with_decoder(Some(with_byte_tokens(prefix)?));
    Ok(inner)
}

/// The pieces that give the text the greatest sum of scores.
pub(super) fn unigram(gguf: &GgufTokenizer) -> Result<tokenizers::Tokenizer> {
    need_scores(gguf)?;
    let unk = gguf.unk().filter(|&id| gguf.is_live(id as usize));
    let unk = unk.ok_or_else(|| Error::refused("tokenizer.ggml.unknown_token_id is missing, or no token of use"))?;
    let (pieces, bytes) = (scored(gguf)?, has_bytes(gguf));
    let model = guarded(|| Unigram::from(pieces, Some(unk as usize), bytes))?;
    let mut inner = tokenizers::Tokenizer::new(ModelWrapper::Unigram(model));
    if !gguf.charsmap.is_empty() {
        guarded(|| inner.with_normalizer(Some(charsmap(&gguf.charsmap)?)).map(|_| ()))?;
    }
    let prefix = gguf.add_space_prefix.unwrap_or(false);
    let scheme = if prefix { PrependScheme::Always } else { PrependScheme::Never };
    // Where spaces are kept as they are, a piece may have several of them.
    let tidy = gguf.remove_extra_whitespaces.unwrap_or(false);
    let spaces = Metaspace::new(SPACE, scheme, tidy);
    let words: Vec<PreTokenizerWrapper> = tidy.then(|| WhitespaceSplit.into()).into_iter().chain([spaces.clone().into()]).collect();
    inner.with_pre_tokenizer(Some(Cuts::new(words)));
    inner.with_decoder(Some(if bytes { with_byte_tokens(prefix)? } else { spaces.into() }));
    Ok(inner)
}

fn need_scores(gguf: &GgufTokenizer) -> Result<()> {
    if gguf.scores.is_empty() { Err(Error::refused("tokenizer.ggml.scores is missing")) } else { Ok(()) }
}

fn has_bytes(gguf: &GgufTokenizer) -> bool {
    (0..gguf.tokens.len()).any(|id| gguf.usage(id) == Use::Byte)
}

/// Every pair of pieces that makes a piece, the one of the best score first; of equal ones the lower id, then the shorter left part.
fn merges(gguf: &GgufTokenizer, ids: &HashMap<&str, u32>) -> Vec<(String, String)> {
    let mut merges: Vec<(f32, u32, &str, &str)> = Vec::new();
    for (id, text) in gguf.live().filter(|&(id, _)| gguf.usage(id as usize) == Use::Normal) {
        for (at, _) in text.char_indices().skip(1) {
            let (left, right) = text.split_at(at);
            if ids.contains_key(left) && ids.contains_key(right) {
                merges.push((gguf.scores[id as usize], id, left, right));
            }
        }
    }
    // The sort keeps the order of parts.
    merges.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    merges.into_iter().map(|(_, _, left, right)| (left.to_owned(), right.to_owned())).collect()
}

/// The pieces by id. The tokens at the end that no text can have are left out, and no score but a normal token's counts for what an
/// unknown character costs.
fn scored(gguf: &GgufTokenizer) -> Result<Vec<(String, f64)>> {
    let count = gguf.live().last().map_or(0, |(id, _)| id as usize + 1);
    let normal = (0..count).filter(|&id| gguf.usage(id) == Use::Normal).map(|id| f64::from(gguf.scores[id]));
    let least = normal.fold(0.0, f64::min);
    let piece = |id: usize| {
        let score = f64::from(gguf.scores[id]);
        let score = match gguf.usage(id) {
            Use::Normal => score,
            Use::Byte | Use::Unused => score.max(least),
            Use::Unknown | Use::Control | Use::UserDefined => 0.0,
        };
        if gguf.tokens[id].is_empty() {
            return Err(Error::refused(format!("tokenizer.ggml.tokens: token {id} is empty")));
        }
        Ok((gguf.tokens[id].clone(), score))
    };
    (0..count).map(piece).collect()
}

/// The map of characters; its first number, the bytes of its trie, is checked before memory is taken for them.
fn charsmap(bytes: &[u8]) -> tokenizers::Result<Precompiled> {
    let trie = bytes.first_chunk().map(|head| u32::from_le_bytes(*head) as usize);
    if trie.is_none_or(|trie| trie < 4 || trie % 4 != 0 || trie > bytes.len() - 4) {
        return Err("tokenizer.ggml.precompiled_charsmap is cut off".into());
    }
    Precompiled::from(bytes).map_err(|error| format!("tokenizer.ggml.precompiled_charsmap: {error}").into())
}

fn with_byte_tokens(prefix: bool) -> Result<DecoderWrapper> {
    let mut decoders: Vec<DecoderWrapper> =
        vec![guarded(|| Replace::new(SPACE.to_string(), " "))?.into(), ByteFallback::new().into(), Fuse::new().into()];
    if prefix {
        decoders.push(Strip::new(' ', 1, 0).into());
    }
    Ok(Decoders::new(decoders).into())
}
