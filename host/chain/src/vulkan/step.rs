//! Fills the step's words for a frame.

use coli_base::{Error, Result};
use coli_shaders::contract::{RowAt, Sampling};

use super::frame::Frame;
use crate::program::{self, Program};
use crate::state::States;

/// The rows that a frame runs over.
pub(super) struct Rows<'a> {
    /// All rows of the step.
    pub step_rows: &'a [RowAt],
    /// Those of its rows that run.
    pub tokens: &'a [RowAt],
    /// The row of the step that is the first of them.
    pub first: usize,
    pub outs: &'a [RowAt],
    pub sampling: &'a [Sampling],
}

/// The pages of the step's conversations.
pub(super) struct PageWords {
    /// Conversations, in the order of the step's rows.
    pub convs: Vec<u32>,
    /// Addresses, two words each.
    pub words: Vec<u32>,
    /// By class, then conversation: the first row that may be read, the first row of the first page, the first of its words, and how many
    /// pages there are.
    pub entries: Vec<Vec<[u32; 4]>>,
}

/// Lists the pages that rows may name.
pub(super) fn pages(states: &States, classes: usize, rows: &Rows<'_>) -> PageWords {
    let mut convs: Vec<u32> = vec![];
    for at in rows.step_rows {
        if convs.last() != Some(&at.conv) {
            convs.push(at.conv);
        }
    }
    let mut words = vec![];
    let mut entries = vec![vec![]; classes];
    for (class, entries) in entries.iter_mut().enumerate() {
        for conv in &convs {
            let entry = states.pages(class, *conv).map_or([0; 4], |pages| {
                let first_word = words.len() as u32;
                words.extend(pages.addresses.iter().flat_map(|address| [*address as u32, (address >> 32) as u32]));
                [pages.readable, pages.first, first_word, pages.addresses.len() as u32]
            });
            entries.push(entry);
        }
    }
    PageWords { convs, words, entries }
}

/// Writes everything that a frame finds.
pub(super) fn fill(
    frame: &Frame,
    to: &mut [u32],
    inputs: &[Vec<u32>],
    program: &Program,
    states: &States,
    rows: &Rows<'_>,
    pages: &PageWords,
) -> Result<()> {
    let words = &frame.words;
    words.put_rows(to, program::Rows::Tokens, rows.tokens, rows.first, &pages.convs);
    words.put_rows(to, program::Rows::Outs, rows.outs, 0, &pages.convs);
    words.put_sampling(to, rows.sampling);
    for (number, input) in program.inputs.iter().enumerate() {
        let (first, count) = if input.rows == program::Rows::Tokens { (rows.first, rows.tokens.len()) } else { (0, rows.outs.len()) };
        let from = &inputs[number][first * input.width..(first + count) * input.width];
        to[words.inputs[number]..][..from.len()].copy_from_slice(from);
    }
    fill_tables(frame, to, inputs, program, rows);
    for (number, grid) in frame.grids.iter().enumerate() {
        let of = if grid.rows == program::Rows::Tokens { rows.tokens } else { rows.outs };
        words.put_grid(to, number, grid, of);
    }
    for (class, entries) in pages.entries.iter().enumerate() {
        for (conv, entry) in entries.iter().take(words.caps.tokens as usize).enumerate() {
            let [readable, first, word, count] = *entry;
            let entry = [readable, first, words.pages.start as u32 + word, count];
            to[words.entries[class] + 4 * conv..][..4].copy_from_slice(&entry);
        }
    }
    fill_accumulators(frame, to, states, rows)
}

fn fill_tables(frame: &Frame, to: &mut [u32], inputs: &[Vec<u32>], program: &Program, rows: &Rows<'_>) {
    let mut numbers = vec![];
    for (table, at) in frame.tables.iter().zip(&frame.words.tables) {
        let tokens = table.rows == program::Rows::Tokens;
        let (first, count) = if tokens { (rows.first, rows.tokens.len()) } else { (0, rows.outs.len()) };
        let width = program.inputs[table.input].width;
        numbers.resize(table.width, 0.0f32);
        for row in 0..count {
            let ints = &inputs[table.input][(first + row) * width..][table.columns.clone()];
            (table.fill)(bytemuck::cast_slice(ints), &mut numbers);
            let entry = &mut to[at + row * table.width..][..table.width];
            entry.iter_mut().zip(&numbers).for_each(|(word, number)| *word = number.to_bits());
        }
    }
}

/// Where each row finds and leaves the accumulators of its conversation.
fn fill_accumulators(frame: &Frame, to: &mut [u32], states: &States, rows: &Rows<'_>) -> Result<()> {
    if !states.has_accumulators() {
        return Ok(());
    }
    for (row, at) in rows.tokens.iter().enumerate() {
        let missing = || Error::run(format!("no value before position {} of conversation {}", at.pos, at.conv));
        let (values, keep) = states.accumulator_pages(at.conv, at.pos).ok_or_else(missing)?;
        let entry = [values as u32, (values >> 32) as u32, keep as u32, (keep >> 32) as u32];
        to[frame.words.accumulators + 4 * row..][..4].copy_from_slice(&entry);
    }
    Ok(())
}
