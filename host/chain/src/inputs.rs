//! Row inputs: the numbers that come with a step's rows.

use std::collections::BTreeSet;
use std::ops::Range;

use coli_base::{Error, Result};
use coli_plugin_api::program::Builtin;

use crate::cpu::Run;
use crate::program::{LinkedSegment, Program, RowInput, RowSource, Rows};
use crate::state::States;
use crate::step::{Row, Step};

/// A plugin's pure function from the last tokens of a conversation to table rows.
pub trait IdSource: Send + Sync {
    /// The table rows of the input of this name for the last token of the window; -1 reads nothing. Near a conversation's start the
    /// window is shorter than the input says.
    fn ids(&self, input: &str, window: &[u32]) -> Result<Vec<i64>>;
}

/// The inputs that some segments read, by their numbers.
pub(crate) fn used(program: &Program, segments: &Range<usize>) -> Vec<usize> {
    let numbers: BTreeSet<usize> = program.segments[segments.clone()].iter().flat_map(|segment| segment.inputs.iter().copied()).collect();
    numbers.into_iter().collect()
}

/// Checks a step of at most `rows_max` rows, makes room for it, and fills the inputs `used` of the step's rows. Nothing has changed when it
/// fails.
pub(crate) fn begin<'s>(
    program: &Program,
    used: &[usize],
    rows_max: usize,
    ids: Option<&dyn IdSource>,
    states: &mut States,
    step: &'s Step,
    inputs: &mut [Vec<u32>],
) -> Result<Run<'s>> {
    if step.rows.len() > rows_max {
        return Err(Error::run(format!("a step of {} rows, at most {rows_max} were planned", step.rows.len())));
    }
    let checked = step.check(states, program.description().vocab)?;
    let mut of_tokens = used.iter().filter(|number| program.inputs[**number].rows == Rows::Tokens);
    let filled = of_tokens.try_for_each(|number| {
        let (input, words) = (&program.inputs[*number], &mut inputs[*number]);
        fill(input, step.rows.iter(), words);
        fill_ids(input, &step.rows, states, ids, words)
    });
    if filled.is_err() {
        states.abandon();
    }
    filled.map(|()| Run { step, checked, sampled: vec![None; step.rows.len()] })
}

/// Fills an input that the rows themselves say.
pub(crate) fn fill<'r>(input: &RowInput, rows: impl Iterator<Item = &'r Row>, words: &mut [u32]) {
    let RowSource::Builtin(kind) = input.source else { return };
    for (row, words) in rows.zip(words.chunks_exact_mut(input.width)) {
        match kind {
            Builtin::Token => words[0] = row.token,
            Builtin::Position => words[0] = row.pos,
            Builtin::Conversation => words[0] = row.conv.0,
            Builtin::RotaryPosition => words.iter_mut().zip(row.rpos).for_each(|(word, pos)| *word = pos as u32),
            // Filled when it is known.
            Builtin::NextToken => {}
        }
    }
}

/// Fills an input that a plugin's function says, from the tokens up to each row. The step has begun.
fn fill_ids(input: &RowInput, rows: &[Row], states: &States, ids: Option<&dyn IdSource>, words: &mut [u32]) -> Result<()> {
    let RowSource::Ids { name, window } = &input.source else { return Ok(()) };
    let ids = ids.ok_or_else(|| Error::run(format!("nobody gives the ids of input `{name}`")))?;
    for (row, words) in rows.iter().zip(words.chunks_exact_mut(input.width)) {
        let found = ids.ids(name, states.history(row.conv)?.window(row.pos, *window))?;
        if found.len() != input.width {
            let (have, want) = (found.len(), input.width);
            return Err(Error::refused(format!("the plugin gives {have} ids for input `{name}`, its recording says {want}")));
        }
        for (word, id) in words.iter_mut().zip(&found) {
            let id = i32::try_from(*id).ok().filter(|id| *id >= -1);
            *word = id.ok_or_else(|| Error::refused(format!("the plugin gives an id outside any table for input `{name}`")))? as u32;
        }
    }
    Ok(())
}

/// Fills the next tokens of a draft segment: those of the rows, else the sampled ones.
pub(crate) fn fill_next(program: &Program, segment: &LinkedSegment, run: &Run<'_>, inputs: &mut [Vec<u32>]) -> Result<()> {
    let next = RowSource::Builtin(Builtin::NextToken);
    for number in segment.inputs.iter().filter(|number| program.inputs[**number].source == next) {
        for (index, (row, word)) in run.step.rows.iter().zip(&mut inputs[*number]).enumerate() {
            let token = row.next.or(run.sampled[index]);
            *word = token.ok_or_else(|| Error::run(format!("the token after row {index} of the step is not known")))?;
        }
    }
    Ok(())
}
