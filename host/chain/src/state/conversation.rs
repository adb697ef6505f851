//! A conversation: a value that can be copied, cut off and continued. Copies share pages.

use coli_base::{Error, Result};
use coli_plugin_api::describe::Keep;

use super::Grow;
use super::accumulators::{Advance, Held};
use super::history::History;
use super::pool::Pool;
use super::table::{Class, SLACK, Table};

/// What the states remember of a conversation.
#[derive(Debug, Clone, Default)]
pub(super) struct Conversation {
    pub len: u32,
    /// Its tokens, those of a step that has not ended included.
    pub tokens: History,
    /// Its rows, by class.
    pub tables: Vec<Table>,
    held: Held,
}

/// How a conversation grows in a step.
#[derive(Debug)]
pub(super) struct Growth {
    len: u32,
    /// Whether rows were marked, so that the step may be taken back in part or as a whole.
    marked: bool,
    /// Its accumulators, where there are any.
    pub advance: Option<Advance>,
}

impl Growth {
    /// The first accumulator that has not seen every row, and the position where it stands.
    pub fn unfinished(&self) -> Option<(usize, u32)> {
        self.advance.as_ref()?.unfinished()
    }
}

impl Conversation {
    pub fn new(classes: usize) -> Self {
        Self { tables: vec![Table::default(); classes], ..Self::default() }
    }

    /// The same conversation as it was after `len` positions; an error says what of it is gone. This is the one rule behind rewinds,
    /// snapshots and shared prefixes.
    pub fn cut(&self, classes: &[Class], accumulators: &Pool, len: u32) -> Result<Self> {
        let gone = |what: String| Err(Error::run(format!("a conversation of {} positions cannot continue after {len}: {what}", self.len)));
        if len > self.len {
            return gone("it has not got there".into());
        }
        let mut tables = classes.iter().zip(&self.tables);
        if let Some((class, table)) = tables.find(|(class, table)| !table.can_continue(class, len)) {
            let Keep::Last(n) = class.keep else { return gone("it began later".into()) };
            return gone(format!("of the states that keep the last {n} positions, row {} is the first one stored", table.low()));
        }
        if !accumulators.is_empty() && !self.held.has(len) {
            return gone(format!("its accumulators are known after {} positions only", self.held.lens()));
        }
        let mut cut = Self { len, ..self.clone() };
        cut.tables.iter_mut().zip(classes).for_each(|(table, class)| table.truncate(class, len));
        cut.held.truncate(len);
        cut.tokens.truncate(len);
        Ok(cut)
    }

    /// The same conversation without the values that its accumulators had before.
    pub fn without_past(mut self) -> Self {
        self.held.forget(self.len);
        self
    }

    /// Makes room for a step's positions. Nothing has changed when it fails.
    pub fn grow(&mut self, classes: &mut [Class], accumulators: &mut Pool, by: &Grow) -> Result<Growth> {
        self.tokens.extend(&by.tokens);
        let growth = self.try_grow(classes, accumulators, by.len, &by.marked);
        if growth.is_err() {
            self.abandon(classes);
        }
        growth
    }

    fn try_grow(&mut self, classes: &mut [Class], accumulators: &mut Pool, to: u32, marked: &[u32]) -> Result<Growth> {
        for (table, class) in self.tables.iter_mut().zip(classes) {
            table.grow(class, self.len, to)?;
        }
        let advance = match accumulators.is_empty() {
            true => None,
            false => Some(Advance::begin(accumulators, &self.held, self.len, to, marked)?),
        };
        Ok(Growth { len: to, marked: !marked.is_empty(), advance })
    }

    /// Takes the growth in once the step has run, and lets go what is not needed any more.
    pub fn finish(&mut self, classes: &[Class], growth: Growth) {
        let back = growth.len.saturating_sub(SLACK);
        let back = if growth.marked { back.min(self.len) } else { back };
        self.tables.iter_mut().zip(classes).for_each(|(table, class)| table.forget(class, back));
        if let Some(advance) = growth.advance {
            advance.finish(&mut self.held, self.len);
        }
        self.len = growth.len;
    }

    /// Gives back the room that a step made which did not end.
    pub fn abandon(&mut self, classes: &[Class]) {
        let len = self.len;
        self.tables.iter_mut().zip(classes).for_each(|(table, class)| table.truncate(class, len));
        self.tokens.truncate(len);
    }
}
