//! `coli eval logits`: the scores after each given token, for whoever compares an implementation with another.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use coli_base::{Error, Result};
use coli_chain::cpu::Ports;
use coli_chain::{Row, Step};
use coli_config::Environment;
use coli_plugin_api::describe::SegmentName;
use coli_plugin_api::program::ports;
use coli_shaders::contract::Sampling;
use coli_store::{Checkpoint, F32Tensor, OutFile};

use crate::cli::LogitsArgs;
use crate::engine::{Engine, Facts};
use crate::stop;

pub(super) fn run(args: &LogitsArgs, environment: &Environment, verbose: u8) -> anyhow::Result<()> {
    // A stop that is seen here takes the unfinished file away.
    stop::install();
    let prepared = super::prepare_model(&args.model, environment, verbose)?;
    check_ids(&args.ids, prepared.facts())?;
    let out = args.out.as_deref().map(|path| create_out(path, prepared.checkpoint())).transpose()?;
    let mut engine = super::load_model(prepared)?;
    let results = evaluate(&mut engine, &args.ids, args.layers)?;
    match out {
        Some(out) => {
            let path = out.path().display().to_string();
            out.write(&results.tensors(args.ids.len()))?;
            say!("wrote {path}");
        }
        None => results.print_best(&args.ids, engine.facts().vocab as usize)?,
    }
    Ok(())
}

/// Makes the file before the work, so that a bad path costs nothing.
fn create_out(path: &Path, checkpoint: &Checkpoint) -> Result<OutFile> {
    if checkpoint.is_part(path) {
        return Err(Error::usage(format!("--out: `{}` is a file of the model itself", path.display())));
    }
    OutFile::create(path).map_err(|error| error.within("--out"))
}

fn check_ids(ids: &[u32], facts: &Facts) -> Result<()> {
    let (vocab, context) = (facts.vocab, facts.context);
    if let Some(id) = ids.iter().find(|id| **id >= vocab) {
        return Err(Error::usage(format!("--ids: {id} is not below the vocabulary's {vocab}")));
    }
    if ids.len() > context as usize {
        let (count, advice) = (ids.len(), super::how_to_fit(ids.len(), facts));
        return Err(Error::usage(format!("--ids: {count} tokens do not fit a context of {context} positions; give {advice}")));
    }
    Ok(())
}

/// Rows of each tensor, in order.
#[derive(Default)]
pub struct Results {
    logits: Vec<f32>,
    /// By number: 0 is the embedding, the last one stands after the final norm.
    hidden: BTreeMap<u32, Vec<f32>>,
}

/// Runs the tokens as one conversation and keeps all scores, and with `layers` the rows between segments.
pub fn evaluate(engine: &mut Engine, ids: &[u32], layers: bool) -> Result<Results> {
    let conv = engine.open_conversation();
    let mut results = Results::default();
    for chunk in ids.chunks(engine.facts().prompt_rows) {
        let start = engine.len(conv);
        let row = |(index, id): (usize, &u32)| Row::text(conv, start + index as u32, *id, Some(Sampling::GREEDY));
        let step = Step::prompt(chunk.iter().enumerate().map(row).collect());
        engine.step(&step, |ports| {
            results.take(ports, layers)?;
            stop::check()
        })?;
    }
    engine.close_conversation(conv);
    Ok(results)
}

impl Results {
    fn take(&mut self, ports: &Ports<'_>, layers: bool) -> Result<()> {
        take_rows(&mut self.logits, ports, ports::LOGITS)?;
        if layers {
            // The output of layer i is hidden.i+1, but for the last layer's, in whose place the rows after the final norm stand.
            let (number, port) = match ports.segment {
                SegmentName::Embed => (0, ports::STREAM),
                SegmentName::Layer(index) => (index + 1, ports::STREAM),
                _ => (u32::MAX, ports::HIDDEN),
            };
            take_rows(self.hidden.entry(number).or_default(), ports, port)?;
        }
        Ok(())
    }

    /// Names and shapes as the fixtures have them.
    fn tensors(&self, rows: usize) -> Vec<F32Tensor<'_>> {
        let tensor = |name: String, data: &'_ [f32]| -> (String, Vec<usize>) { (name, vec![rows, data.len() / rows]) };
        let mut tensors = Vec::new();
        let layers = self.hidden.len().saturating_sub(2) as u32;
        for (number, data) in &self.hidden {
            let number = match *number {
                u32::MAX => layers,
                number if number == layers => continue,
                number => number,
            };
            let (name, shape) = tensor(format!("hidden.{number}"), data);
            tensors.push(F32Tensor { name, shape, data });
        }
        let (name, shape) = tensor("logits".into(), &self.logits);
        tensors.push(F32Tensor { name, shape, data: &self.logits });
        tensors
    }

    fn print_best(&self, ids: &[u32], vocab: usize) -> Result<()> {
        super::to_stdout(|out| {
            writeln!(out, "position token best logit")?;
            for (position, (id, row)) in ids.iter().zip(self.logits.chunks_exact(vocab)).enumerate() {
                let best = row.iter().enumerate().fold(0, |best, (id, logit)| if *logit > row[best] { id } else { best });
                writeln!(out, "{position} {id} {best} {}", row[best])?;
            }
            Ok(())
        })
    }
}

fn take_rows(into: &mut Vec<f32>, ports: &Ports<'_>, name: &str) -> Result<()> {
    let Some((columns, rows)) = ports.get(name) else { return Ok(()) };
    let len = rows * columns.width();
    into.try_reserve(len).map_err(|_| Error::run(format!("no memory for another {len} numbers of `{name}`; give fewer --ids")))?;
    (0..rows).for_each(|row| into.extend_from_slice(columns.row(row)));
    Ok(())
}
