//! `coli bench`: how fast a model runs here. Token ids are drawn from a fixed key, so no tokenizer is needed and every run does the same.

use std::io::Write as _;
use std::time::Instant;

use coli_base::units::Bytes;
use coli_base::{Error, Result, memory};
use coli_chain::profile::{OpTime, Profile};
use coli_config::Environment;
use coli_shaders::contract::Sampling;
use serde_json::{Value, json};

use crate::cli::BenchArgs;
use crate::engine::{Engine, Input};
use crate::stop;

/// Tokens of a run that is not timed.
const WARM: usize = 8;

pub(super) fn run(args: &BenchArgs, environment: &Environment, verbose: u8) -> anyhow::Result<()> {
    stop::install();
    let prepared = super::prepare_model(&args.model, environment, verbose)?;
    let facts = prepared.facts();
    let needed = args.prompt.max(args.gen_tokens.saturating_add(1));
    if needed > facts.context as usize {
        let context = facts.context;
        return Err(
            Error::usage(format!("{needed} tokens do not fit a context of {context}: use {}", super::how_to_fit(needed, facts))).into()
        );
    }
    let start = Instant::now();
    let mut engine = super::load_model(prepared)?;
    let load_seconds = start.elapsed().as_secs_f64();
    let mut ids = Ids::new(engine.facts().vocab);
    let prompt: Vec<u32> = ids.by_ref().take(args.prompt).collect();
    let tokens: Vec<u32> = ids.take(args.gen_tokens).collect();
    let warm = prompt.len().clamp(1, WARM);
    read(&mut engine, prompt.get(..warm).unwrap_or_default())?;
    write(&mut engine, tokens.get(..tokens.len().min(WARM)).unwrap_or_default())?;
    let mut figures = Figures { load_seconds, ..Figures::default() };
    for run in 0..args.runs {
        figures.prompt.extend(rate(prompt.len(), || read(&mut engine, &prompt))?);
        figures.generated.extend(rate(tokens.len(), || write(&mut engine, &tokens))?);
        say!("run {} of {}: prompt {}, decode {}", run + 1, args.runs, shown(figures.prompt.last()), shown(figures.generated.last()));
    }
    // Not among the timed runs: looking at the clock takes time as well.
    figures.profiles = if args.profile { vec![("prompt", profile(&mut engine, |e| read(e, &prompt))?)] } else { vec![] };
    figures.profiles.push(("decode", profile(&mut engine, |e| write(e, &tokens))?));
    report(args, &engine, &figures)?;
    Ok(())
}

/// What was measured.
#[derive(Default)]
struct Figures {
    load_seconds: f64,
    /// Tokens a second, for each run.
    prompt: Vec<f64>,
    generated: Vec<f64>,
    profiles: Vec<(&'static str, Profile)>,
}

/// Token ids without an end, the same ones every time: a linear congruential generator's upper bits.
struct Ids {
    state: u64,
    vocab: u32,
}

impl Ids {
    fn new(vocab: u32) -> Self {
        Self { state: 1, vocab: vocab.max(1) }
    }
}

impl Iterator for Ids {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some((self.state >> 33) as u32 % self.vocab)
    }
}

/// Runs a prompt in a conversation of its own.
fn read(engine: &mut Engine, ids: &[u32]) -> Result<()> {
    in_conversation(engine, |engine, conv| match ids {
        [] => Ok(()),
        ids => engine.append(conv, Input::Prompt(ids), Sampling::GREEDY, stop::check).map(drop),
    })
}

/// Runs tokens one by one in a conversation of its own, as they are when they are generated.
fn write(engine: &mut Engine, ids: &[u32]) -> Result<()> {
    in_conversation(engine, |engine, conv| {
        ids.iter().try_for_each(|id| engine.append(conv, Input::Next(id), Sampling::GREEDY, stop::check).map(drop))
    })
}

fn in_conversation(engine: &mut Engine, work: impl FnOnce(&mut Engine, coli_chain::ConvId) -> Result<()>) -> Result<()> {
    let conv = engine.open_conversation();
    let done = work(engine, conv);
    engine.close_conversation(conv);
    done
}

/// Tokens a second, where there are any.
fn rate(tokens: usize, work: impl FnOnce() -> Result<()>) -> Result<Option<f64>> {
    let start = Instant::now();
    work()?;
    Ok((tokens > 0).then(|| tokens as f64 / start.elapsed().as_secs_f64()))
}

fn profile(engine: &mut Engine, work: impl FnOnce(&mut Engine) -> Result<()>) -> Result<Profile> {
    engine.relay().set_profile(true);
    work(engine)?;
    Ok(engine.relay().set_profile(false).unwrap_or_default())
}

fn median(rates: &[f64]) -> Option<f64> {
    let mut sorted = rates.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        len if len % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

fn shown(rate: Option<&f64>) -> String {
    rate.map_or_else(|| "none".into(), |rate| format!("{rate:.2} tokens a second"))
}

fn report(args: &BenchArgs, engine: &Engine, figures: &Figures) -> Result<()> {
    let facts = engine.facts();
    let (prompt, generated) = (median(&figures.prompt), median(&figures.generated));
    let decode = figures.profiles.iter().find(|(name, _)| *name == "decode").filter(|_| args.gen_tokens > 0);
    let token_bytes = decode.map(|(_, profile)| profile.weight_bytes() / args.gen_tokens as u64);
    let rate = token_bytes.zip(generated).map(|(bytes, rate)| bytes as f64 * rate / 1e9);
    let peak = memory::peak_bytes();
    let shares: Vec<_> = figures.profiles.iter().filter(|_| args.profile).map(|(name, profile)| (*name, shares(profile))).collect();
    super::to_stdout(|out| {
        if args.json {
            let profile: serde_json::Map<String, Value> = shares.iter().map(|(name, ops)| ((*name).into(), json_of(ops))).collect();
            let line = json!({
                "prompt": args.prompt, "gen": args.gen_tokens, "prompt_tok_s": prompt, "gen_tok_s": generated,
                "prompt_runs": figures.prompt, "gen_runs": figures.generated, "load_seconds": figures.load_seconds,
                "peak_bytes": peak, "weight_bytes": facts.weight_bytes, "token_weight_bytes": token_bytes, "gen_gb_s": rate,
                "threads": facts.threads, "device": facts.device, "precision": facts.precision,
                "kernels": facts.fast.map(|level| level.name()), "profile": profile,
            });
            return writeln!(out, "{line}");
        }
        writeln!(out, "prompt of {}: {}", args.prompt, shown(prompt.as_ref()))?;
        write!(out, "decode of {}: {}", args.gen_tokens, shown(generated.as_ref()))?;
        match token_bytes.zip(rate) {
            Some((bytes, rate)) => writeln!(out, ", {} of weights a token, {rate:.1} GB/s", Bytes(bytes))?,
            None => writeln!(out)?,
        }
        writeln!(
            out,
            "loaded in {:.1} s, {} at most",
            figures.load_seconds,
            peak.map_or("unknown".into(), |peak| Bytes(peak).to_string())
        )?;
        for (name, ops) in &shares {
            writeln!(out, "{name}:")?;
            ops.iter().try_for_each(|op| writeln!(out, "  {}", op.line()))?;
        }
        Ok(())
    })
}

/// An op's part of a profile.
struct Share {
    op: String,
    /// Of the time of all ops.
    share: f64,
    runs: u64,
    /// Microseconds a run.
    micros: f64,
    /// Bytes of weights a second, in 10^9.
    gb_s: f64,
    /// Of what a plain copy reads and writes, where that is known.
    of_bandwidth: Option<f64>,
}

impl Share {
    fn line(&self) -> String {
        let Self { op, share, runs, micros, gb_s, of_bandwidth } = self;
        let mut line = format!("{:>5.1}%  {op}  ({runs} runs of {micros:.1} us", share * 100.0);
        if *gb_s > 0.0 {
            line.push_str(&format!(", {gb_s:.1} GB/s"));
        }
        if let Some(of) = of_bandwidth.filter(|_| *gb_s > 0.0) {
            line.push_str(&format!(", {:.0}% of a copy's", of * 100.0));
        }
        line.push(')');
        line
    }
}

/// The parts of a profile, the longest first.
fn shares(profile: &Profile) -> Vec<Share> {
    let total: f64 = profile.ops.values().map(|op| op.time.as_secs_f64()).sum();
    let share = |(name, op): (&String, &OpTime)| {
        let seconds = op.time.as_secs_f64();
        let rate = if seconds > 0.0 { op.bytes as f64 / seconds } else { 0.0 };
        Share {
            op: name.clone(),
            share: seconds / total,
            runs: op.runs,
            micros: seconds * 1e6 / op.runs as f64,
            gb_s: rate / 1e9,
            of_bandwidth: profile.bandwidth.map(|most| rate / most),
        }
    };
    let mut shares: Vec<_> = profile.ops.iter().map(share).collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    shares
}

fn json_of(ops: &[Share]) -> Value {
    let ops = ops.iter().map(
        |op| json!({"op": op.op, "share": op.share, "runs": op.runs, "us": op.micros, "gb_s": op.gb_s, "of_bandwidth": op.of_bandwidth}),
    );
    ops.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_of_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[9.0, 1.0, 5.0, 3.0]), Some(4.0));
    }

    #[test]
    fn ids_are_below_the_vocabulary_and_repeat() {
        let ids: Vec<u32> = Ids::new(7).take(200).collect();
        assert!(ids.iter().all(|id| *id < 7) && (0..7).all(|id| ids.contains(&id)));
        assert_eq!(ids, Ids::new(7).take(200).collect::<Vec<_>>());
    }
}
