//! `coli run`: continues a text, or answers a question.

use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::time::{Duration, Instant, SystemTime};

use coli_base::units::Bytes;
use coli_base::{Error, Kind, Result, memory};
use coli_config::{Environment, Key, Values};
use coli_shaders::contract::Sampling;
use coli_text::{Message, StopTexts};
use serde::Serialize;

use super::generate::{Ask, Generated, StopReason, generate};
use super::{defaults, prompt};
use crate::cli::RunArgs;
use crate::engine::{Engine, Facts, text};
use crate::stop;

/// What `--json` prints. It fills as the work goes on: what a signal came before is `null` or empty.
#[derive(Debug, Default, Serialize)]
struct Report {
    model: Option<String>,
    plugin: Option<String>,
    device: Option<String>,
    precision: Option<String>,
    /// `None` where nothing is drawn.
    seed: Option<u64>,
    prompt_tokens: Vec<u32>,
    tokens: Vec<u32>,
    text: String,
    stop_reason: Option<StopReason>,
    timings: Timings,
}

/// Seconds, and tokens a second. Seconds count from the start of the command; `null` where it did not come that far.
#[derive(Debug, Default, Serialize)]
struct Timings {
    load_s: Option<f64>,
    first_token_s: Option<f64>,
    prompt_tok_s: f64,
    gen_tok_s: f64,
}

pub(super) fn run(args: &RunArgs, environment: &Environment, verbose: u8) -> anyhow::Result<()> {
    let mut report = Report::default();
    let mut done = fill(&mut report, args, environment, verbose);
    match (&done, report.stop_reason) {
        (Err(error), _) if is_stop(error) => report.stop_reason = Some(StopReason::Interrupted),
        (Err(_), _) => return done,
        (Ok(()), Some(StopReason::Interrupted)) => done = stop::check().map_err(Into::into),
        (Ok(()), _) => {}
    }
    if args.json {
        let json = serde_json::to_string(&report)?;
        super::to_stdout(|out| writeln!(out, "{json}"))?;
    }
    done
}

/// Whether an error says that a signal asked for the end.
fn is_stop(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<Error>().map(|error| error.kind);
    stop::asked() && matches!(kind, Some(Kind::Interrupted | Kind::Terminated | Kind::HungUp))
}

/// Does the work, and notes in the report what comes of it.
fn fill(report: &mut Report, args: &RunArgs, environment: &Environment, verbose: u8) -> anyhow::Result<()> {
    let start = Instant::now();
    let stop_texts = StopTexts::new(&args.stop)?;
    // Before signals are ours: at a terminal Ctrl-C should end the wait for a prompt.
    let prompt = prompt::read(args.prompt.as_ref(), args.file.as_deref())?;
    stop::install();
    let prepared = super::prepare_model(&args.model, environment, verbose)?;
    let checkpoint = prepared.checkpoint();
    let Facts { plugin, device, precision, .. } = prepared.facts();
    report.model = Some(checkpoint.path().display().to_string());
    (report.plugin, report.device) = (Some(plugin.clone()), Some(device.clone()));
    report.precision = Some(precision.clone());
    let tokenizer = text::tokenizer(checkpoint).map_err(with_way_out)?;
    let generation = checkpoint.optional_object(defaults::FILE)?;
    let stop_ids = text::stop_ids(checkpoint, generation.as_ref())?;
    let values = defaults::with_model(args.generation.values().or(&environment.values), generation.as_ref())?.or_defaults();
    let prompt_tokens = match args.chat {
        true => {
            let template = text::chat_template(checkpoint)?;
            tokenizer.encode_rendered(&template.render(&messages(args.system.as_deref(), prompt), SystemTime::now())?)?
        }
        false => tokenizer.encode(&prompt)?,
    };
    check_prompt(&prompt_tokens, prepared.facts())?;
    report.prompt_tokens = prompt_tokens;
    let mut engine = super::load_model(prepared)?;
    let load_s = start.elapsed().as_secs_f64();

    let sampling = sampling(&values);
    report.seed = (sampling.temperature > 0.0).then_some(sampling.seed);
    if let Some(seed) = report.seed {
        say!("seed {seed}");
    }
    let ask = Ask {
        prompt: &report.prompt_tokens,
        sampling,
        repeat_penalty: values.number(Key::RepeatPenalty),
        tokens: values.count(Key::Tokens),
        stop_ids: &stop_ids,
        stop_texts,
        stream: !args.json,
    };
    let generated = generate(&mut engine, &tokenizer, ask)?;
    report.timings = timings(start, load_s, report.prompt_tokens.len(), &generated);
    summarize(&engine, &report.prompt_tokens, &generated, &report.timings);
    (report.tokens, report.text, report.stop_reason) = (generated.tokens, generated.text, Some(generated.stop));
    Ok(())
}

/// A text needs the tokenizer, whatever the model's plugin needs.
fn with_way_out(error: Error) -> Error {
    Error::new(error.kind, format!("{}; `coli eval logits --ids` works without a tokenizer", error.text))
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
            "the prompt has {} tokens, and the context {context} positions; give {}",
            ids.len(),
            super::how_to_fit(ids.len(), facts)
        )));
    }
    if let Some(id) = ids.iter().find(|id| **id >= vocab) {
        return Err(Error::refused(format!("the tokenizer gives token {id}, and the model's vocabulary has {vocab}")));
    }
    Ok(())
}

fn timings(start: Instant, load_s: f64, prompt_tokens: usize, generated: &Generated) -> Timings {
    let rate = |count: usize, time: Duration| if time > Duration::ZERO { count as f64 / time.as_secs_f64() } else { 0.0 };
    // A prompt that was given up has no rate.
    let prompt_tokens = generated.first_token_at.map_or(0, |_| prompt_tokens);
    Timings {
        load_s: Some(load_s),
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
