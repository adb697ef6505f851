//! Accumulators: their values at the positions where a conversation may continue.
//!
//! A value is a page with the numbers of every accumulator of a conversation, and is never changed once it is held. A step works on a
//! copy, so a step that fails has changed nothing. What is held after a step: the value before it, the value after each row that was
//! marked for it, and the value after the step.

use coli_base::Result;

use super::pool::{Page, Pool};

/// Values of a conversation's accumulators, each after so many positions, in that order; after 0 all numbers are 0.
#[derive(Debug, Clone, Default)]
pub(super) struct Held(Vec<(u32, Page)>);

impl Held {
    /// Whether the value after `len` positions is known.
    pub fn has(&self, len: u32) -> bool {
        len == 0 || self.at(len).is_some()
    }

    /// The positions after which it is known, in words.
    pub fn lens(&self) -> String {
        let lens = std::iter::once(0).chain(self.0.iter().map(|(len, _)| *len));
        lens.map(|len| len.to_string()).collect::<Vec<_>>().join(", ")
    }

    /// Forgets what comes after `len` positions.
    pub fn truncate(&mut self, len: u32) {
        self.0.retain(|(at, _)| *at <= len);
    }

    /// Forgets what comes before `len` positions.
    pub fn forget(&mut self, len: u32) {
        self.0.retain(|(at, _)| *at >= len);
    }

    fn at(&self, len: u32) -> Option<&Page> {
        self.0.iter().find(|(at, _)| *at == len).map(|(_, page)| page)
    }
}

/// The accumulators of a conversation within a step.
#[derive(Debug)]
pub(super) struct Advance {
    /// Their values, each after as many positions as `next` says.
    values: Page,
    /// The position of the row that advances each accumulator next.
    next: Vec<u32>,
    /// Pages for the values that are kept on the way, each after so many positions.
    kept: Vec<(u32, Page)>,
    end: u32,
}

impl Advance {
    /// Begins at `len` positions; the values after those of `marked` will be kept.
    pub fn begin(pool: &mut Pool, held: &Held, len: u32, end: u32, marked: &[u32]) -> Result<Self> {
        let values = match held.at(len) {
            None => pool.filled(0.0)?,
            Some(before) => {
                let values = pool.take()?;
                for arena in 0..pool.arenas() {
                    pool.copy_all(arena, before, &values);
                }
                values
            }
        };
        let kept = marked.iter().filter(|at| **at < end).map(|at| Ok((*at, pool.take()?))).collect::<Result<_>>()?;
        Ok(Self { values, next: vec![len; pool.arenas()], kept, end })
    }

    /// The value of an accumulator before the row at `pos`, to be advanced by it; `None` unless that row is the next one.
    pub fn value<'a>(&mut self, pool: &'a mut Pool, arena: usize, pos: u32) -> Option<&'a mut [f32]> {
        let next = self.next.get_mut(arena).filter(|next| **next == pos && pos < self.end)?;
        *next += 1;
        if let Some((_, kept)) = self.kept.iter().find(|(len, _)| *len == pos) {
            pool.copy_all(arena, &self.values, kept);
        }
        pool.numbers_mut(arena, &self.values)
    }

    /// The page of the values, and the page that keeps those after `len` positions, where one does.
    pub fn pages(&self, len: u32) -> (&Page, Option<&Page>) {
        (&self.values, self.kept.iter().find(|(at, _)| *at == len).map(|(_, page)| page))
    }

    /// Notes that every accumulator has seen every row.
    pub fn all_advanced(&mut self) {
        self.next.fill(self.end);
    }

    /// The first accumulator that has not seen every row, and the position where it stands.
    pub fn unfinished(&self) -> Option<(usize, u32)> {
        self.next.iter().copied().enumerate().find(|(_, next)| *next != self.end)
    }

    /// What is held after the step, which began at `len` positions.
    pub fn finish(self, held: &mut Held, len: u32) {
        held.forget(len);
        held.0.extend(self.kept);
        held.0.push((self.end, self.values));
    }
}
