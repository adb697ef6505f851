//! How byte-level families cut a text into words before any merge, by the name that a GGUF file has for it (`tokenizer.ggml.pre`).
//!
//! The names are those that llama.cpp's converter writes. What stands behind a name is the `tokenizer.json` that the family publishes, not
//! llama.cpp's own splitting: the ids must be those that the model was trained with, which differ for text that is not in composed form.

use coli_base::{Error, Result};
use tokenizers::normalizers::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::punctuation::Punctuation;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper, SplitDelimiterBehavior};

use crate::tokenizer::guarded;

/// One cut: each match is a piece of its own, and so is what lies between two.
#[derive(Debug, Clone, Copy)]
enum Cut {
    Regex(&'static str),
    /// Every digit of any script by itself, or runs of them.
    Digits {
        single: bool,
    },
    /// Runs of punctuation.
    Punctuation,
    /// The words of the first byte-level vocabulary.
    Words,
}

/// A family of byte-level vocabularies.
#[derive(Debug)]
pub(super) struct Family {
    names: &'static [&'static str],
    /// Whether the text is brought into composed form first.
    composed: bool,
    cuts: &'static [Cut],
    /// Whether a word that is a token is that token, whatever merges would make of it.
    pub(super) whole_words: bool,
    /// Whether a text begins with the bos token where the file does not say.
    pub(super) bos: bool,
}

const FAMILIES: &[Family] = &[
    family(&["gpt-2", "phi-2"], &[Cut::Words]),
    composed(family(&["olmo", "mpt"], &[Cut::Words])),
    family(&["starcoder", "refact", "smollm"], &[Cut::Digits { single: true }, Cut::Words]),
    composed(family(&["command-r"], &[Cut::Digits { single: true }, Cut::Words])),
    composed(family(&["qwen2", "deepseek-r1-qwen"], &[Cut::Regex(SINGLE_DIGITS)])),
    composed(family(&["qwen35"], &[Cut::Regex(MARKS)])),
    family(&["dbrx", "chatglm-bpe"], &[Cut::Regex(TRIPLE_DIGITS)]),
    whole_words(family(&["glm4", "glm5"], &[Cut::Regex(TRIPLE_DIGITS)])),
    bos(whole_words(family(&["llama-bpe", "llama3", "llama-v3"], &[Cut::Regex(TRIPLE_DIGITS)]))),
    whole_words(family(&["gpt-4o", "llama4"], &[Cut::Regex(CASES)])),
    bos(whole_words(family(&["tekken"], &[Cut::Regex(CASES_WITHOUT_CONTRACTIONS)]))),
    whole_words(family(&["kimi-k2"], &[Cut::Regex(HAN_APART)])),
    family(&["deepseek-v3"], &[Cut::Regex(r"\p{N}{1,3}"), Cut::Regex(HAN_KANA), Cut::Regex(MARKS_AND_SYMBOLS)]),
    family(
        &["deepseek-llm"],
        &[
            Cut::Regex(r"[\r\n]"),
            Cut::Regex(CASED_LETTERS),
            Cut::Regex(r"\s?[!-/:-~\u{ff01}-\u{ff0f}\u{ff1a}-\u{ff5e}\u{2018}-\u{201f}\u{3000}-\u{3002}]+"),
            Cut::Regex(r"\s+$"),
            Cut::Regex(EAST_ASIAN),
            Cut::Digits { single: true },
        ],
    ),
    family(
        &["deepseek-coder"],
        &[Cut::Regex(r"[\r\n]"), Cut::Regex(r"\s?\p{L}+"), Cut::Regex(r"\s?\p{P}+"), Cut::Regex(EAST_ASIAN), Cut::Digits { single: true }],
    ),
    family(&["falcon"], &[Cut::Punctuation, Cut::Words, Cut::Digits { single: false }, Cut::Regex("[0-9][0-9][0-9]")]),
    // Nobody publishes this one: it is what llama.cpp did before its files had names.
    family(&["default"], &[Cut::Regex(r"[\p{P}\$\+<=>\^~\|]+"), Cut::Words, Cut::Digits { single: false }, Cut::Regex("[0-9][0-9][0-9]")]),
];

const SINGLE_DIGITS: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TRIPLE_DIGITS: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const MARKS: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*",
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
);
const CASES: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
const CASES_WITHOUT_CONTRACTIONS: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
const HAN_APART: &str = concat!(
    r"[\p{Han}]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
const HAN_KANA: &str = r"[\u{4e00}-\u{9fa5}\u{3040}-\u{309f}\u{30a0}-\u{30ff}]+";
const MARKS_AND_SYMBOLS: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"##,
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
const EAST_ASIAN: &str = r"[\u{4e00}-\u{9fa5}\u{800}-\u{4e00}\u{ac00}-\u{d7ff}]+";
const CASED_LETTERS: &str = concat!(
    r"\s?[A-Za-z\u{b5}\u{c0}-\u{d6}\u{d8}-\u{f6}\u{f8}-\u{1ba}\u{1bc}-\u{1bf}\u{1c4}-\u{293}\u{295}-\u{2af}\u{370}-\u{373}",
    r"\u{376}\u{377}\u{37b}-\u{37d}\u{37f}\u{386}\u{388}-\u{38a}\u{38c}\u{38e}-\u{3a1}\u{3a3}-\u{3f5}\u{3f7}-\u{481}\u{48a}-",
    r"\u{52f}\u{531}-\u{556}\u{10a0}-\u{10c5}\u{13a0}-\u{13f5}\u{13f8}-\u{13fd}\u{1c90}-\u{1cba}\u{1cbd}-\u{1cbf}\u{1d00}-",
    r"\u{1d2b}\u{1d6b}-\u{1d77}\u{1d79}-\u{1d9a}\u{1e00}-\u{1f15}\u{1f18}-\u{1f1d}\u{1f20}-\u{1f45}\u{1f48}-\u{1f4d}\u{1f50}",
    r"-\u{1f57}\u{1f59}\u{1f5b}\u{1f5d}\u{1f5f}-\u{1f7d}\u{1f80}-\u{1fb4}\u{1fb6}-\u{1fbc}\u{1fbe}\u{1fc2}-\u{1fc4}\u{1fc6}-",
    r"\u{1fcc}\u{1fd0}-\u{1fd3}\u{1fd6}-\u{1fdb}\u{1fe0}-\u{1fec}\u{1ff2}-\u{1ff4}\u{1ff6}-\u{1ffc}\u{2102}\u{2107}\u{210a}-",
    r"\u{2113}\u{2115}\u{2119}-\u{211d}\u{2124}\u{2126}\u{2128}\u{212a}-\u{212d}\u{212f}-\u{2134}\u{2139}\u{213c}-\u{213f}",
    r"\u{2145}-\u{2149}\u{214e}\u{2183}\u{2184}\u{2c00}-\u{2c7b}\u{2c7e}-\u{2ce4}\u{2ceb}-\u{2cee}\u{2cf2}\u{2cf3}\u{a640}-",
    r"\u{a66d}\u{a680}-\u{a69b}\u{a722}-\u{a76f}\u{a771}-\u{a787}\u{a78b}-\u{a78e}\u{ab70}-\u{abbf}\u{fb00}-\u{fb06}\u{fb13}",
    r"-\u{fb17}\u{ff21}-\u{ff3a}\u{ff41}-\u{ff5a}\u{10400}-\u{1044f}\u{104b0}-\u{104d3}\u{104d8}-\u{104fb}\u{10c80}-",
    r"\u{10cb2}\u{10cc0}-\u{10cf2}\u{118a0}-\u{118df}\u{1e900}-\u{1e943}]+",
);

const fn family(names: &'static [&'static str], cuts: &'static [Cut]) -> Family {
    Family { names, composed: false, cuts, whole_words: false, bos: false }
}

const fn composed(family: Family) -> Family {
    Family { composed: true, ..family }
}

const fn whole_words(family: Family) -> Family {
    Family { whole_words: true, ..family }
}

const fn bos(family: Family) -> Family {
    Family { bos: true, ..family }
}

impl Family {
    /// The family that a file names.
    pub(super) fn named(name: Option<&str>) -> Result<&'static Self> {
        let found = name.and_then(|name| FAMILIES.iter().find(|family| family.names.contains(&name)));
        found.ok_or_else(|| {
            let known: Vec<&str> = Self::all().collect();
            let what = name.map_or("is missing".into(), |name| format!("is `{name}`"));
            Error::refused(format!("tokenizer.ggml.pre {what}; coli knows {}", known.join(", ")))
        })
    }

    /// All names.
    pub(super) fn all() -> impl Iterator<Item = &'static str> {
        FAMILIES.iter().flat_map(|family| family.names.iter().copied())
    }

    pub(super) fn normalizer(&self) -> Option<NormalizerWrapper> {
        self.composed.then_some(NormalizerWrapper::NFC(NFC))
    }

    /// The cuts; the last one turns bytes into characters.
    pub(super) fn pre_tokenizer(&self) -> Result<PreTokenizerWrapper> {
        let mut steps: Vec<PreTokenizerWrapper> = self.cuts.iter().map(step).collect::<Result<_>>()?;
        if !self.cuts.iter().any(|cut| matches!(cut, Cut::Words)) {
            steps.push(ByteLevel::new(false, true, false).into());
        }
        Ok(Sequence::new(steps).into())
    }
}

fn step(cut: &Cut) -> Result<PreTokenizerWrapper> {
    Ok(match *cut {
        Cut::Regex(text) => guarded(|| Split::new(SplitPattern::Regex(text.into()), SplitDelimiterBehavior::Isolated, false))?.into(),
        Cut::Digits { single } => Digits::new(single).into(),
        Cut::Punctuation => Punctuation::new(SplitDelimiterBehavior::Contiguous).into(),
        Cut::Words => ByteLevel::new(false, true, true).into(),
    })
}
