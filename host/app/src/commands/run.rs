//! `coli run`: continues a text.

use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::time::Instant;

use coli_base::units::Bytes;
use coli_base::{Error, Kind, Result, memory};
use coli_config::Environment;
use coli_shaders::contract::Sampling;
use coli_text::{StopIds, Tokenizer};
use serde::Serialize;

use crate::cli::RunArgs;
use crate::engine::{Engine, Facts};
use crate::stop;

/// Why generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum StopReason {
    /// The model gave one of its end tokens.
    Eos,
    /// `-n` tokens were generated.
    Length,
    /// The context is full.
    Context,
    /// Ctrl-C.
    Interrupted,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    model: String,
    plugin: &'a str,
    device: &'a str,
    precision: &'a str,
    seed: u64,
    prompt_tokens: &'a [u32],
    tokens: &'a [u32],
    text: &'a str,
    stop_reason: StopReason,
    timings: Timings,
}

/// Seconds, and tokens a second. `first_token_s` counts from the start of the command.
#[derive(Debug, Serialize)]
struct Timings {
    load_s: f64,
    first_token_s: f64,
    prompt_tok_s: f64,
    gen_tok_s: f64,
}

/// What was generated.
struct Generated {
    tokens: Vec<u32>,
    text: String,
    stop: StopReason,
    prompt_s: f64,
    first_token_at: Instant,
    gen_s: f64,
}

pub(super) fn run(args: &RunArgs, environment: &Environment, verbose: u8) -> anyhow::Result<()> {
    let start = Instant::now();
    let prompt = args.prompt.as_deref().filter(|prompt| !prompt.is_empty());
    let prompt = prompt.ok_or_else(|| Error::usage("there is no prompt; give one: coli run \"Emma was\""))?;
    stop::install();
    let prepared = super::prepare_model(&args.model, environment, verbose)?;
    let checkpoint = prepared.checkpoint();
    let model = checkpoint.dir().display().to_string();
    let tokenizer = Tokenizer::open(checkpoint.dir())?;
    let stop_ids = StopIds::from_json(checkpoint.optional_json("generation_config.json")?.as_ref(), checkpoint.config())?;
    let prompt_tokens = tokenizer.encode(prompt)?;
    check_prompt(&prompt_tokens, prepared.facts())?;
    let mut engine = super::load_model(prepared)?;
    let load_s = start.elapsed().as_secs_f64();

    let seed = args.seed.unwrap_or_else(|| RandomState::new().hash_one("seed"));
    let sampling = Sampling { temperature: args.temp, top_k: args.top_k, top_p: args.top_p, seed };
    if args.temp > 0.0 {
        say!("seed {seed}");
    }
    let generated = generate(&mut engine, &tokenizer, &stop_ids, &prompt_tokens, sampling, args)?;

    let rate = |count: usize, seconds: f64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let timings = Timings {
        load_s,
        first_token_s: generated.first_token_at.duration_since(start).as_secs_f64(),
        prompt_tok_s: rate(prompt_tokens.len(), generated.prompt_s),
        gen_tok_s: rate(generated.tokens.len().saturating_sub(1), generated.gen_s),
    };
    summarize(&engine, &prompt_tokens, &generated, &timings);
    if args.json {
        let facts = engine.facts();
        let report = Report {
            model,
            plugin: &facts.plugin,
            device: &facts.device,
            precision: &facts.precision,
            seed,
            prompt_tokens: &prompt_tokens,
            tokens: &generated.tokens,
            text: &generated.text,
            stop_reason: generated.stop,
            timings,
        };
        let json = serde_json::to_string(&report)?;
        super::to_stdout(|out| writeln!(out, "{json}"))?;
    }
    match generated.stop {
        StopReason::Interrupted => Err(Error::new(Kind::Interrupted, "stopped by Ctrl-C").into()),
        _ => Ok(()),
    }
}

fn check_prompt(ids: &[u32], facts: &Facts) -> Result<()> {
    let (context, vocab) = (facts.context, facts.vocab);
    if ids.is_empty() {
        return Err(Error::usage("the prompt has no tokens"));
    }
    if ids.len() > context as usize {
        return Err(Error::usage(format!(
            "the prompt has {} tokens, and the context {context} positions; shorten it or give a larger --ctx",
            ids.len()
        )));
    }
    if let Some(id) = ids.iter().find(|id| **id >= vocab) {
        return Err(Error::refused(format!("tokenizer.json gives token {id}, and the model's vocabulary has {vocab}")));
    }
    Ok(())
}

fn generate(
    engine: &mut Engine,
    tokenizer: &Tokenizer,
    stop_ids: &StopIds,
    prompt: &[u32],
    sampling: Sampling,
    args: &RunArgs,
) -> Result<Generated> {
    let conv = engine.open_conversation();
    let mut detokenizer = tokenizer.detokenizer();
    let mut out = Output { stream: !args.json, text: String::new() };
    let interrupted = || match stop::asked() {
        true => Err(Error::new(Kind::Interrupted, "stopped by Ctrl-C")),
        false => Ok(()),
    };
    let prompt_start = Instant::now();
    let mut next = engine.append(conv, prompt, sampling, interrupted)?;
    let first_token_at = Instant::now();
    let mut tokens = Vec::new();
    let stop = loop {
        if tokens.len() == args.tokens as usize {
            break StopReason::Length;
        }
        tokens.push(next);
        if stop_ids.contains(next) {
            break StopReason::Eos;
        }
        out.push(&detokenizer.push(next)?)?;
        if stop::asked() {
            break StopReason::Interrupted;
        }
        if tokens.len() == args.tokens as usize {
            break StopReason::Length;
        }
        if engine.len(conv) == engine.facts().context {
            break StopReason::Context;
        }
        next = engine.append(conv, &[next], sampling, || Ok(()))?;
    };
    let gen_s = first_token_at.elapsed().as_secs_f64();
    out.push(&detokenizer.finish()?)?;
    out.end()?;
    let prompt_s = first_token_at.duration_since(prompt_start).as_secs_f64();
    Ok(Generated { tokens, text: out.text, stop, prompt_s, first_token_at, gen_s })
}

/// The text so far, streamed to standard output unless it goes into a report.
struct Output {
    stream: bool,
    text: String,
}

impl Output {
    fn push(&mut self, piece: &str) -> Result<()> {
        if self.stream && !piece.is_empty() {
            super::to_stdout(|out| out.write_all(piece.as_bytes()))?;
        }
        self.text.push_str(piece);
        Ok(())
    }

    /// On a terminal the text ends its line, so that what follows does not stand beside it.
    fn end(&self) -> Result<()> {
        use std::io::IsTerminal as _;
        if self.stream && std::io::stdout().is_terminal() {
            super::to_stdout(|out| writeln!(out))?;
        }
        Ok(())
    }
}

fn summarize(engine: &Engine, prompt: &[u32], generated: &Generated, timings: &Timings) {
    let peak = memory::peak_bytes().map_or(String::new(), |peak| format!(", peak {}", Bytes(peak)));
    say!(
        "{} prompt tokens at {:.1}/s, {} tokens at {:.1}/s; memory planned {}{peak}",
        prompt.len(),
        timings.prompt_tok_s,
        generated.tokens.len(),
        timings.gen_tok_s,
        Bytes(engine.facts().planned_bytes)
    );
}
