//! The loop of `coli run`: prompt in, tokens out, text as it comes.

use std::io::Write as _;
use std::time::{Duration, Instant};

use coli_base::Result;
use coli_shaders::contract::Sampling;
use coli_text::{Detokenizer, StopIds, StopTexts, Tokenizer};
use serde::Serialize;

use crate::engine::{Engine, Input, Repetition};
use crate::stop;

/// Why generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StopReason {
    /// The model gave one of its end tokens.
    Eos,
    /// A stop text.
    Stop,
    /// So many tokens were asked for.
    Length,
    /// The context is full.
    Context,
    /// Ctrl-C, or another signal that asks for the end.
    Interrupted,
}

/// What is asked for.
pub(super) struct Ask<'a> {
    pub(super) prompt: &'a [u32],
    pub(super) sampling: Sampling,
    /// Over scores of tokens that were there; 1 is none.
    pub(super) repeat_penalty: f32,
    /// The most tokens.
    pub(super) tokens: u32,
    pub(super) stop_ids: &'a StopIds,
    pub(super) stop_texts: StopTexts,
    /// Whether the text goes to standard output as it comes.
    pub(super) stream: bool,
}

/// What was generated.
pub(super) struct Generated {
    /// All tokens, those of a stop text and the one that ended the text too.
    pub(super) tokens: Vec<u32>,
    pub(super) text: String,
    pub(super) stop: StopReason,
    pub(super) prompt_time: Duration,
    /// `None` where there was no time for one.
    pub(super) first_token_at: Option<Instant>,
    /// After the first token.
    pub(super) gen_time: Duration,
}

pub(super) fn generate(engine: &mut Engine, tokenizer: &Tokenizer, ask: Ask<'_>) -> Result<Generated> {
    let conv = engine.open_conversation();
    let mut out = Output { stream: ask.stream, text: String::new(), detokenizer: tokenizer.detokenizer(), stops: ask.stop_texts };
    let mut repetition = (ask.repeat_penalty != 1.0).then(|| Repetition::new(ask.repeat_penalty));
    let mut tokens = Vec::new();
    let start = Instant::now();
    let mut first_token_at = None;
    let reason = loop {
        // A prompt may take long, and is given up at once; a token is waited for.
        let in_prompt = tokens.is_empty();
        let input = tokens.last().map_or(Input::Prompt(ask.prompt), Input::Next);
        let proceed = || if in_prompt { stop::check() } else { Ok(()) };
        let next = match &mut repetition {
            None => engine.append(conv, input, ask.sampling, proceed),
            Some(repetition) => engine.append_lowered(conv, input, ask.sampling, repetition, proceed),
        };
        let next = match next {
            Err(_) if in_prompt && stop::asked() => break StopReason::Interrupted,
            next => next?,
        };
        first_token_at.get_or_insert_with(Instant::now);
        if tokens.len() == ask.tokens as usize {
            break StopReason::Length;
        }
        tokens.push(next);
        if ask.stop_ids.contains(next) {
            break StopReason::Eos;
        }
        if out.push(next)? {
            break StopReason::Stop;
        }
        if stop::asked() {
            break StopReason::Interrupted;
        }
        if tokens.len() == ask.tokens as usize {
            break StopReason::Length;
        }
        if engine.len(conv) == engine.facts().context {
            break StopReason::Context;
        }
    };
    let gen_time = first_token_at.map_or(Duration::ZERO, |at: Instant| at.elapsed());
    let prompt_time = first_token_at.map_or_else(|| start.elapsed(), |at| at.duration_since(start));
    let (text, reason) = out.finish(reason)?;
    Ok(Generated { tokens, text, stop: reason, prompt_time, first_token_at, gen_time })
}

/// The text so far, streamed to standard output unless it goes into a report.
struct Output {
    stream: bool,
    text: String,
    detokenizer: Detokenizer,
    stops: StopTexts,
}

impl Output {
    /// Whether a stop text ended the text.
    fn push(&mut self, id: u32) -> Result<bool> {
        let piece = self.detokenizer.push(id)?;
        let (text, stopped) = self.stops.push(&piece);
        self.give(&text)?;
        Ok(stopped)
    }

    fn give(&mut self, text: &str) -> Result<()> {
        if self.stream && !text.is_empty() {
            super::to_stdout(|out| out.write_all(text.as_bytes()))?;
        }
        self.text.push_str(text);
        Ok(())
    }

    /// Gives out what was held back. On a terminal the text ends its line, so that what follows does not stand beside it.
    fn finish(mut self, reason: StopReason) -> Result<(String, StopReason)> {
        use std::io::IsTerminal as _;
        let mut reason = reason;
        if reason != StopReason::Stop {
            let rest = self.detokenizer.clone().finish()?;
            let (text, stopped) = self.stops.push(&rest);
            self.give(&text)?;
            match stopped {
                true => reason = StopReason::Stop,
                false => {
                    let held = self.stops.finish();
                    self.give(&held)?;
                }
            }
        }
        if self.stream && std::io::stdout().is_terminal() {
            super::to_stdout(|out| writeln!(out))?;
        }
        Ok((self.text, reason))
    }
}
