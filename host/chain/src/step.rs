//! A step: the rows that run together, and the checks that let every op believe them.

use std::collections::HashMap;

use coli_base::{Error, Result};
use coli_shaders::contract::{RowAt, RowClass, Sampling};

use crate::state::{ConvId, Grow, States};

/// A row of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Its conversation.
    pub conv: ConvId,
    /// Its cache position.
    pub pos: u32,
    /// Its rotary position on each axis; the cache position but after pictures.
    pub rpos: [i32; 4],
    /// Its token.
    pub token: u32,
    /// The token after it, where that is known: within a prompt. Draft segments take the sampled one where it is not.
    pub next: Option<u32>,
    /// Whether its outputs are wanted, and how a token is chosen from them.
    pub out: Option<Sampling>,
    /// Whether the conversation may be rewound to just after this row, once the step has run: rows of a verify, before it is known which
    /// of them stay. A conversation with such rows may also be rewound to where the step began. Each costs a copy of the accumulators.
    pub rewindable: bool,
}

impl Row {
    /// A text row.
    pub fn text(conv: ConvId, pos: u32, token: u32, out: Option<Sampling>) -> Self {
        Self { conv, pos, rpos: [pos as i32; 4], token, next: None, out, rewindable: false }
    }
}

/// Rows that run together. Rows of a conversation are contiguous, consecutive in position, and follow what it has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// The rows.
    pub rows: Vec<Row>,
    /// What they run for: a prompt, unless said otherwise.
    pub class: RowClass,
}

/// A step whose rows hold what they promise, with room made for them.
pub(crate) struct CheckedStep {
    /// Where each row stands.
    pub tokens: Vec<RowAt>,
    /// The same for the wanted rows.
    pub outs: Vec<RowAt>,
    /// How a token is chosen, for each wanted row.
    pub sampling: Vec<Sampling>,
}

impl Step {
    /// Rows of a prompt.
    pub fn prompt(rows: Vec<Row>) -> Self {
        Self { rows, class: RowClass::Prompt }
    }

    /// Checks the rows and makes room for them; the step is to be ended by [`States::commit`] or [`States::abandon`]. Nothing has
    /// changed when it fails.
    pub(crate) fn check(&self, states: &mut States, vocab: u32) -> Result<CheckedStep> {
        let mut grows: Vec<Grow> = vec![];
        let mut seen: HashMap<ConvId, usize> = HashMap::new();
        for (index, row) in self.rows.iter().enumerate() {
            let fault = |what: String| Error::run(format!("row {index} of the step: {what}"));
            if let Some(token) = [Some(row.token), row.next].into_iter().flatten().find(|token| *token >= vocab) {
                return Err(fault(format!("token {token} of a vocabulary of {vocab}")));
            }
            let next = match seen.get(&row.conv) {
                Some(last) if last + 1 == index => grows.last().map_or(0, |grow| grow.len),
                Some(_) => return Err(fault(format!("rows of conversation {} are not together", row.conv.0))),
                None => {
                    let len = states.len(row.conv).ok_or_else(|| fault(format!("conversation {} is not open", row.conv.0)))?;
                    grows.push(Grow { conv: row.conv, len, tokens: vec![], marked: vec![] });
                    len
                }
            };
            if row.pos != next {
                return Err(fault(format!("position {}, conversation {} continues at {next}", row.pos, row.conv.0)));
            }
            seen.insert(row.conv, index);
            if let Some(grow) = grows.last_mut() {
                grow.len = next.saturating_add(1);
                grow.tokens.push(row.token);
                grow.marked.extend(row.rewindable.then_some(grow.len));
            }
        }
        states.begin(&grows)?;
        let at = |(index, row): (usize, &Row)| RowAt { conv: row.conv.0, pos: row.pos, step_row: index as u32 };
        let wanted = || self.rows.iter().enumerate().filter(|(_, row)| row.out.is_some());
        Ok(CheckedStep {
            tokens: self.rows.iter().enumerate().map(at).collect(),
            outs: wanted().map(at).collect(),
            sampling: self.rows.iter().filter_map(|row| row.out).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coli_plugin_api::describe::Description;

    #[test]
    fn rows_that_break_the_promise_are_refused() {
        let mut states = States::new(&Description::default(), 4, 100);
        let (a, b) = (states.open(), states.open());
        let row = |conv: ConvId, pos: u32| Row::text(conv, pos, 1, None);
        let mut check = |rows: &[Row]| Step::prompt(rows.to_vec()).check(&mut states, 10).map(|_| ()).map_err(|error| error.text);
        assert_eq!(check(&[row(a, 0), row(a, 1), row(b, 0)]), Ok(()));
        let bad = [
            (vec![row(a, 1)], "continues at 0"),
            (vec![row(a, 0), row(a, 2)], "continues at 1"),
            (vec![row(a, 0), row(a, 0)], "continues at 1"),
            (vec![row(a, 0), row(b, 0), row(a, 1)], "not together"),
            (vec![row(ConvId(7), 0)], "not open"),
            (vec![Row::text(a, 0, 10, None)], "vocabulary of 10"),
        ];
        for (rows, why) in bad {
            let text = check(&rows).unwrap_err();
            assert!(text.contains(why), "{text}: expected {why}");
        }
    }
}
