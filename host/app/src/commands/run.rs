//! `coli run`: continues a text, or answers a question.

use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::time::{Duration, Instant, SystemTime};

use coli_base::units::Bytes;
use coli_base::{Error, Result, memory};
use coli_config::{Environment, Key, Values};
use coli_shaders::contract::Sampling;
use coli_text::{ChatTemplate, Message, StopIds, StopTexts, Tokenizer};
use serde::Serialize;

use super::generate::{Ask, Generated, StopReason, generate};
use super::{defaults, prompt};
use crate::cli::RunArgs;
use crate::engine::{Engine, Facts};
use crate::stop;

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    model: String,
    plugin: &'a str,
    device: &'a str,
    precision: &'a str,
    /// `None` where nothing is drawn.
    seed: Option<u64>,
    prompt_tokens: &'a [u32],
    tokens: &'a [u32],
    text: &'a str,
    stop_reason: StopReason,
    timings: Timings,
}

/// Seconds, and tokens a second. `first_token_s` counts from the start of the command; `null` where there was none.
#[derive(Debug, Serialize)]
struct Timings {
    load_s: f64,
    first_token_s: Option<f64>,
    prompt_tok_s: f64,
    gen_tok_s: f64,
}

pub(super) fn run(args: &RunArgs, environment: &Environment, verbose: u8) -> anyhow::Result<()> {
    let start = Instant::now();
    let stop_texts = StopTexts::new(&args.stop)?;
    // Before signals are ours: at a terminal Ctrl-C should end the wait for a prompt.
    let prompt = prompt::read(args.prompt.as_ref(), args.file.as_deref())?;
    stop::install();
    let prepared = super::prepare_model(&args.model, environment, verbose)?;
    let checkpoint = prepared.checkpoint();
    let model = checkpoint.dir().display().to_string();
    let tokenizer = Tokenizer::open(checkpoint.dir())?;
    let generation = checkpoint.optional_object(defaults::FILE)?;
    let stop_ids = StopIds::from_json(generation.as_ref(), checkpoint.config())?;
    let values = defaults::with_model(args.generation.values().or(&environment.values), generation.as_ref())?.or_defaults();
    let prompt_tokens = match args.chat {
        true => {
            let template = ChatTemplate::open(checkpoint.dir())?;
            tokenizer.encode_rendered(&template.render(&messages(args.system.as_deref(), prompt), SystemTime::now())?)?
        }
        false => tokenizer.encode(&prompt)?,
    };
    check_prompt(&prompt_tokens, prepared.facts())?;
    let mut engine = super::load_model(prepared)?;
    let load_s = start.elapsed().as_secs_f64();

    let sampling = sampling(&values);
    let seed = (sampling.temperature > 0.0).then_some(sampling.seed);
    if let Some(seed) = seed {
        say!("seed {seed}");
    }
    let ask = Ask {
        prompt: &prompt_tokens,
        sampling,
        repeat_penalty: values.number(Key::RepeatPenalty),
        tokens: values.count(Key::Tokens),
        stop_ids: &stop_ids,
        stop_texts,
        stream: !args.json,
    };
    let generated = generate(&mut engine, &tokenizer, ask)?;
    let timings = timings(start, load_s, prompt_tokens.len(), &generated);
    summarize(&engine, &prompt_tokens, &generated, &timings);
    if args.json {
        let Facts { plugin, device, precision, .. } = engine.facts();
        let report = Report {
            model,
            plugin,
            device,
            precision,
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
        StopReason::Interrupted => Ok(stop::check()?),
        _ => Ok(()),
    }
}

fn messages(system: Option<&str>, prompt: String) -> Vec<Message> {
    let system = system.map(|text| Message { role: "system", content: text.into() });
    system.into_iter().chain([Message { role: "user", content: prompt }]).collect()
}

fn sampling(values: &Values) -> Sampling {
    Sampling {
        temperature: values.number(Key::Temp),
        top_k: values.count(Key::TopK),
        top_p: values.number(Key::TopP),
        min_p: values.number(Key::MinP),
        seed: values.whole(Key::Seed).unwrap_or_else(|| RandomState::new().hash_one("seed")),
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

fn timings(start: Instant, load_s: f64, prompt_tokens: usize, generated: &Generated) -> Timings {
    let rate = |count: usize, time: Duration| if time > Duration::ZERO { count as f64 / time.as_secs_f64() } else { 0.0 };
    // A prompt that was given up has no rate.
    let prompt_tokens = generated.first_token_at.map_or(0, |_| prompt_tokens);
    Timings {
        load_s,
        first_token_s: generated.first_token_at.map(|at| at.duration_since(start).as_secs_f64()),
        prompt_tok_s: rate(prompt_tokens, generated.prompt_time),
        gen_tok_s: rate(generated.tokens.len().saturating_sub(1), generated.gen_time),
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
