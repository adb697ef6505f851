//! `coli eval ppl`: how well a model predicts a text, as the mean of `-ln p(next token)`.
//!
//! The text is cut into windows of `--ctx` tokens, each of which begins with the last token of the one before. Every token but a window's
//! first one is predicted from the tokens before it in the window, so each token but the text's first is scored once. Sums are in f64.

use std::io::Write as _;
use std::time::Instant;

use coli_base::{Error, Result, files};
use coli_chain::cpu::Ports;
use coli_chain::{Row, Step};
use coli_config::Environment;
use coli_plugin_api::program::ports;
use coli_shaders::contract::Sampling;
use serde_json::json;

use crate::cli::PplArgs;
use crate::engine::{Engine, text};
use crate::stop;

/// Bytes of a text. What takes the time is the model.
const TEXT_MAX: u64 = 1 << 30;
/// Tokens of a window, where nothing says otherwise.
const WINDOW: u32 = 512;

pub(super) fn run(args: &PplArgs, environment: &Environment, verbose: u8) -> anyhow::Result<()> {
    stop::install();
    let missing = || Error::usage(format!("--text: `{}` does not exist", args.text.display()));
    let text = files::read_bounded(&args.text, TEXT_MAX).map_err(|error| error.within("--text"))?.ok_or_else(missing)?;
    let text = String::from_utf8(text).map_err(|_| Error::usage(format!("--text: `{}` is not UTF-8", args.text.display())))?;
    let prepared = super::prepare_model(&args.model, environment, verbose)?;
    let ids = text::tokenizer(prepared.checkpoint())?.encode(&text)?;
    let window = prepared.facts().context.min(args.model.ctx.unwrap_or(WINDOW)) as usize;
    if ids.len() < 2 || window < 2 {
        return Err(Error::usage(format!("{} tokens in windows of {window}: two are needed for one prediction", ids.len())).into());
    }
    let mut engine = super::load_model(prepared)?;
    let start = Instant::now();
    let mut sum = Sum::default();
    for first in (0..ids.len() - 1).step_by(window - 1) {
        score(&mut engine, &ids[first..ids.len().min(first + window)], &mut sum)?;
        if sum.windows.is_multiple_of(8) {
            say!("{} of {} tokens scored, {:.4} nats a token", sum.scored, ids.len() - 1, sum.mean());
        }
    }
    report(args, ids.len(), window, &sum, start.elapsed().as_secs_f64())?;
    Ok(())
}

/// What has been scored.
#[derive(Default)]
struct Sum {
    nats: f64,
    scored: usize,
    windows: usize,
}

impl Sum {
    fn mean(&self) -> f64 {
        self.nats / self.scored as f64
    }
}

/// Adds the tokens of a window but its first one.
fn score(engine: &mut Engine, ids: &[u32], sum: &mut Sum) -> Result<()> {
    let conv = engine.open_conversation();
    let mut next = ids[1..].iter();
    for chunk in ids.chunks(engine.facts().prompt_rows) {
        let start = engine.len(conv);
        let row = |(index, id): (usize, &u32)| {
            let at = start + index as u32;
            // Nothing is asked of the last token.
            let wanted = (at as usize + 1 < ids.len()).then_some(Sampling::GREEDY);
            Row::text(conv, at, *id, wanted)
        };
        let step = Step::prompt(chunk.iter().enumerate().map(row).collect());
        engine.step(&step, |ports| {
            add(ports, &mut next, sum)?;
            stop::check()
        })?;
    }
    engine.close_conversation(conv);
    sum.windows += 1;
    Ok(())
}

fn add<'i>(ports: &Ports<'_>, next: &mut impl Iterator<Item = &'i u32>, sum: &mut Sum) -> Result<()> {
    let Some((columns, rows)) = ports.get(ports::LOGITS) else { return Ok(()) };
    for row in 0..rows {
        let logits = columns.row(row);
        let token = next.next().and_then(|id| logits.get(*id as usize));
        let token = token.ok_or_else(|| Error::run("a token of the text has no score"))?;
        sum.nats += log_sum_exp(logits) - f64::from(*token);
        sum.scored += 1;
    }
    Ok(())
}

/// `ln(sum of e^x)`, without its overflow.
fn log_sum_exp(numbers: &[f32]) -> f64 {
    let largest = numbers.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = numbers.iter().map(|number| f64::from(number - largest).exp()).sum();
    f64::from(largest) + sum.ln()
}

fn report(args: &PplArgs, tokens: usize, window: usize, sum: &Sum, seconds: f64) -> Result<()> {
    let (mean, rate) = (sum.mean(), sum.scored as f64 / seconds);
    super::to_stdout(|out| {
        if args.json {
            let line = json!({
                "tokens": tokens, "window": window, "windows": sum.windows, "scored": sum.scored,
                "nats_per_token": mean, "perplexity": mean.exp(), "seconds": seconds,
            });
            return writeln!(out, "{line}");
        }
        writeln!(out, "{:.4} nats a token, perplexity {:.3}, over {} tokens in windows of {window}", mean, mean.exp(), sum.scored)?;
        writeln!(out, "{rate:.1} tokens a second")
    })
}

#[cfg(test)]
mod tests {
    use super::log_sum_exp;

    #[test]
    fn sums_of_exponentials_do_not_overflow() {
        assert!((log_sum_exp(&[0.0, 0.0, 0.0, 0.0]) - 4f64.ln()).abs() < 1e-15);
        assert!((log_sum_exp(&[1000.0, 1000.0]) - (1000.0 + 2f64.ln())).abs() < 1e-12);
        assert!((log_sum_exp(&[-1000.0, -2000.0]) + 1000.0).abs() < 1e-12);
    }
}
