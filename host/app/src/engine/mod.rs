//! A model that is open: plugin, weights, program, states and executor, wired together.
//!
//! [`prepare`] is the way in; what it chose and why is in [`Facts`]. Once loaded, the engine knows no files and no plugin: it steps rows.

mod find;
mod open;
mod own_ops;
mod repetition;
pub mod text;
mod vulkan;

use coli_base::{Error, Result};
use coli_chain::cpu::Ports;
use coli_chain::program::OpTable;
use coli_chain::{ConvId, Relay, Row, Step};
use coli_plugin_api::program::ports;
use coli_shaders::contract::{RowClass, Sampling};
use coli_shaders::fast::Level;
use coli_shaders::ops::sample;

pub use find::{ModelFolder, discover_plugins, find_model};
pub use open::{Described, OpenRequest, Prepared, describe, model_kind, prepare, record_all};
pub use repetition::Repetition;
pub use vulkan::VulkanPlaces;

/// Rows whose logits are computed at a time. Logits are the widest value there is.
pub const OUTS_MAX: usize = 16;

/// What was chosen when a model was opened.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The plugin's id.
    pub plugin: String,
    /// The plugin's version.
    pub plugin_version: String,
    /// The device.
    pub device: String,
    /// Why that device.
    pub device_reason: String,
    /// The precision.
    pub precision: String,
    /// Why that precision.
    pub precision_reason: String,
    /// The instructions of fast mode; `None` in exact mode.
    pub fast: Option<Level>,
    /// Threads.
    pub threads: usize,
    /// Positions of the context.
    pub context: u32,
    /// The most that the model's context may have.
    pub context_max: u32,
    /// Token ids are below this.
    pub vocab: u32,
    /// Rows of a prompt that run together.
    pub prompt_rows: usize,
    /// Bytes of weights.
    pub weight_bytes: u64,
    /// Bytes planned for weights, scratch memory and one full context.
    pub planned_bytes: u64,
}

/// Tokens to append.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// A prompt, or a part of one.
    Prompt(&'a [u32]),
    /// A token that was generated.
    Next(&'a u32),
}

impl<'a> Input<'a> {
    fn ids(self) -> &'a [u32] {
        match self {
            Self::Prompt(ids) => ids,
            Self::Next(id) => std::slice::from_ref(id),
        }
    }
}

/// An open model.
pub struct Engine {
    facts: Facts,
    relay: Relay,
    notes: Vec<String>,
}

impl Engine {
    /// What was chosen.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Lines for the log: what a device runs, and what not.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The executors and states, for tests that look at what crosses between them.
    pub fn relay(&mut self) -> &mut Relay {
        &mut self.relay
    }

    /// A new conversation.
    pub fn open_conversation(&mut self) -> ConvId {
        self.relay.open()
    }

    /// Forgets a conversation.
    pub fn close_conversation(&mut self, conv: ConvId) {
        self.relay.close(conv);
    }

    /// Positions that a conversation has; 0 where there is no such conversation.
    pub fn len(&self, conv: ConvId) -> u32 {
        self.relay.len(conv).unwrap_or(0)
    }

    /// Forgets a conversation's positions from `len` on.
    pub fn rewind(&mut self, conv: ConvId, len: u32) -> Result<()> {
        self.relay.rewind(conv, len)
    }

    /// Runs a step; `observe` sees the ports of every segment.
    pub fn step(&mut self, step: &Step, observe: impl FnMut(&Ports<'_>) -> Result<()>) -> Result<()> {
        self.relay.run(step, observe)
    }

    /// Appends tokens to a conversation, in steps of at most `prompt_rows`, and gives the token that follows the last one.
    /// `proceed` is asked after each segment of each step, and may end the work with an error.
    pub fn append(&mut self, conv: ConvId, input: Input<'_>, sampling: Sampling, mut proceed: impl FnMut() -> Result<()>) -> Result<u32> {
        let mut sampled = None;
        self.append_observed(conv, input, sampling, |ports| {
            sampled = sampled_id(ports).or(sampled);
            proceed()
        })?;
        sampled.ok_or_else(|| Error::run("there are no tokens to run"))
    }

    /// [`Self::append`], with the token chosen on the host from scores that repetition has lowered. Without a penalty both choose the
    /// same token.
    pub fn append_lowered(
        &mut self,
        conv: ConvId,
        input: Input<'_>,
        sampling: Sampling,
        repetition: &mut Repetition,
        mut proceed: impl FnMut() -> Result<()>,
    ) -> Result<u32> {
        let mut logits = Vec::new();
        // The recorded choice is made as well; this one costs it least.
        self.append_observed(conv, input, Sampling::GREEDY, |ports| {
            if let Some((columns, rows @ 1..)) = ports.get(ports::LOGITS) {
                logits = columns.row(rows - 1).to_vec();
            }
            proceed()
        })?;
        repetition.note(input.ids());
        logits.truncate(self.facts.vocab as usize);
        repetition.lower(&mut logits);
        let position = self.len(conv).checked_sub(1).ok_or_else(|| Error::run("there are no tokens to run"))?;
        let id = sample::choose(&logits, &sampling, position).map_err(|why| Error::run(format!("choosing a token: {why}")))?;
        Ok(id as u32)
    }

    fn append_observed(
        &mut self,
        conv: ConvId,
        input: Input<'_>,
        sampling: Sampling,
        mut observe: impl FnMut(&Ports<'_>) -> Result<()>,
    ) -> Result<()> {
        let ids = input.ids();
        let class = if matches!(input, Input::Prompt(_)) { RowClass::Prompt } else { RowClass::Step };
        let mut done = 0;
        for chunk in ids.chunks(self.facts.prompt_rows) {
            let start = self.len(conv);
            let rows = chunk.iter().enumerate().map(|(index, id)| {
                let next = ids.get(done + index + 1).copied();
                Row { next, ..Row::text(conv, start + index as u32, *id, next.is_none().then_some(sampling)) }
            });
            let step = Step { rows: rows.collect(), class };
            self.step(&step, &mut observe)?;
            done += chunk.len();
        }
        Ok(())
    }
}

fn sampled_id(ports: &Ports<'_>) -> Option<u32> {
    let (ids, rows) = ports.get(ports::SAMPLED)?;
    let last = rows.checked_sub(1)?;
    u32::try_from(ids.ints(last)[0]).ok()
}

/// The op library's ids, as manifests name them.
pub fn op_ids() -> Vec<String> {
    coli_shaders::ops::all().into_iter().map(|entry| entry.id).collect()
}

/// The op library.
pub fn op_table() -> OpTable {
    OpTable::library()
}
