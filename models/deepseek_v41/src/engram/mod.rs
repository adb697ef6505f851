//! Engram: the table rows that belong to the n-grams ending at a token. A pure function of a window of token ids.
//!
//! Source: the behaviour of mlx-vlm 0.7.10, `deepseek_v41`, checked by running it.
//!
//! ```text
//! c_j    = the compressed id of the token j places back; once one is before the start of the conversation or a picture's token, it and
//!          all that are further back are the compressed id of engram_pad_token_id
//! m_j    = 2 * r_j + 1, r = numpy default_rng(10007 * layer id).integers(0, ((2^63 - 1) / engram_compressed_vocab_size) / 2, max_ngram)
//! hash_n = c_0 m_0 xor c_1 m_1 xor ... xor c_(n-1) m_(n-1)                      n = 2 ..= max_ngram
//! id     = hash_n mod prime + the sum of the layer's primes before this one     for each n, then for each head
//! ```
//!
//! [`tokens`] has the compressed ids, [`numpy_random`] the numbers r, [`primes`] the primes.

mod numpy_random;
mod primes;
#[cfg(test)]
mod tests;
mod tokens;

use std::iter;

use tokens::TokenMap;

/// The keys of `config.json` that the rows depend on.
#[derive(Debug, Clone)]
pub(crate) struct EngramConfig {
    /// `engram_layer_ids`
    pub layers: Vec<u32>,
    /// `engram_max_ngram_size`
    pub max_ngram: u32,
    /// `engram_vocab_size`
    pub vocab: u64,
    /// `engram_n_heads`
    pub heads: u32,
    /// `engram_pad_token_id`
    pub pad_token: u32,
    /// `engram_compressed_vocab_size`
    pub compressed_vocab: u64,
    /// `image_token_id`
    pub image_token: Option<u32>,
}

/// The function from windows to rows.
pub(crate) struct Engram {
    tokens: TokenMap,
    pad: u64,
    image_token: Option<u32>,
    heads: usize,
    layers: Vec<Layer>,
}

struct Layer {
    /// By places back.
    multipliers: Vec<u64>,
    /// By n-gram length, then head.
    tables: Vec<Table>,
    rows: u64,
}

/// The rows of one n-gram length and head: `prime` of them, from `first` on.
struct Table {
    prime: u64,
    first: u64,
}

impl Engram {
    /// `texts`: the decoded text of each token id, as [`tokens`] says.
    pub(crate) fn new(config: &EngramConfig, texts: &[Option<String>]) -> Result<Self, String> {
        let per_layer = tables_per_layer(config)?;
        let tokens = TokenMap::new(texts);
        let pad = tokens.get(config.pad_token).ok_or_else(|| fault("engram_pad_token_id", config.pad_token, &among(texts.len())))?;
        if tokens.size() != config.compressed_vocab {
            let expected = format!("the tokenizer's texts give {}", tokens.size());
            return Err(fault("engram_compressed_vocab_size", config.compressed_vocab, &expected));
        }
        let primes = primes::from(config.vocab, per_layer * config.layers.len());
        let layers = config.layers.iter().zip(primes.chunks_exact(per_layer));
        let layers = layers.map(|(id, primes)| layer(config, *id, primes)).collect::<Result<_, _>>()?;
        Ok(Self { tokens, pad, image_token: config.image_token, heads: config.heads as usize, layers })
    }

    /// How many rows the table of the `layer`-th of `engram_layer_ids` has; 0 where there is no such layer.
    pub(crate) fn rows(&self, layer: usize) -> u64 {
        self.layers.get(layer).map_or(0, |layer| layer.rows)
    }

    /// The rows of the n-grams that end with the last token of `window`, for each length from 2 and each head. The window holds the
    /// tokens up to that one, as many as there are; those further back than the longest n-gram are not read.
    pub(crate) fn ids(&self, layer: usize, window: &[u32]) -> Result<Vec<i64>, String> {
        let layer = self.layers.get(layer).ok_or_else(|| format!("engram: there is no layer {layer} in `engram_layer_ids`"))?;
        let compressed = self.compressed(window, layer.multipliers.len())?;
        let mut products = compressed.iter().zip(&layer.multipliers).map(|(token, multiplier)| token.wrapping_mul(*multiplier));
        let mut hash = products.next().unwrap_or(0);
        let mut ids = Vec::with_capacity(layer.tables.len());
        for (product, tables) in products.zip(layer.tables.chunks(self.heads)) {
            hash ^= product;
            ids.extend(tables.iter().map(|table| (table.first + hash % table.prime) as i64));
        }
        Ok(ids)
    }

    /// The newest first, padded to `count`.
    fn compressed(&self, window: &[u32], count: usize) -> Result<Vec<u64>, String> {
        if window.is_empty() {
            return Err("engram: an empty window of tokens".into());
        }
        let seen = window.iter().rev().take_while(|token| Some(**token) != self.image_token);
        let seen = seen.map(|token| self.tokens.get(*token).ok_or_else(|| format!("engram: the tokenizer has no token {token}")));
        seen.chain(iter::repeat_with(|| Ok(self.pad))).take(count).collect()
    }
}

/// An error where the model may give ids that have no text: it would come in the middle of one.
pub(crate) fn check_texts(vocab: u32, texts: usize) -> Result<(), String> {
    if texts < vocab as usize { Err(fault("vocab_size", vocab, &among(texts))) } else { Ok(()) }
}

/// Lengths times heads. All bounds are checked here, before anything is computed.
fn tables_per_layer(config: &EngramConfig) -> Result<usize, String> {
    if config.max_ngram < 2 {
        return Err(fault("engram_max_ngram_size", config.max_ngram, "expected 2 or more"));
    }
    if config.heads == 0 {
        return Err(fault("engram_n_heads", config.heads, "expected 1 or more"));
    }
    if config.layers.is_empty() {
        return Err("config.json: `engram_layer_ids` is empty".into());
    }
    if config.vocab == 0 || config.vocab > primes::HIGHEST_START {
        return Err(fault("engram_vocab_size", config.vocab, &format!("expected 1 to {}", primes::HIGHEST_START)));
    }
    let per_layer = u64::from(config.max_ngram - 1) * u64::from(config.heads);
    let all = per_layer.checked_mul(config.layers.len() as u64).filter(|all| *all <= primes::MOST as u64);
    all.map(|_| per_layer as usize).ok_or_else(|| {
        format!(
            "config.json: `engram_n_heads` {} times `engram_max_ngram_size` {} for {} `engram_layer_ids` needs more than {} hash tables",
            config.heads,
            config.max_ngram,
            config.layers.len(),
            primes::MOST
        )
    })
}

/// A compressed id is below the size of their space, so no product of one and a multiplier reaches 2^63.
fn layer(config: &EngramConfig, id: u32, primes: &[u64]) -> Result<Layer, String> {
    let bound = i64::MAX as u64 / config.compressed_vocab.max(1) / 2;
    let drawn = numpy_random::integers(10007 * u64::from(id), bound, config.max_ngram as usize);
    let drawn = drawn.ok_or_else(|| fault("engram_compressed_vocab_size", config.compressed_vocab, "expected less than 2^30"))?;
    let mut rows = 0;
    let place = |prime: &u64| {
        let first = rows;
        rows += prime;
        Table { prime: *prime, first }
    };
    let tables = primes.iter().map(place).collect();
    Ok(Layer { multipliers: drawn.into_iter().map(|number| 2 * number + 1).collect(), tables, rows })
}

fn among(tokens: usize) -> String {
    format!("the tokenizer has {tokens} tokens")
}

fn fault(key: &str, value: impl std::fmt::Display, expected: &str) -> String {
    format!("config.json: `{key}` is {value}, {expected}")
}
