//! The rules of the states as plain sets, written apart from the code that they judge.

use std::collections::BTreeSet;

use coli_plugin_api::describe::Keep;

use super::ops::Kind;

/// Positions that a conversation may always go back in states that keep the last n.
const SLACK: i64 = 8;

/// What is known of a conversation.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub tokens: Vec<u32>,
    /// Rows that each rows state still stores.
    stored: Vec<BTreeSet<i64>>,
    /// Lengths at which the accumulators are known.
    held: BTreeSet<usize>,
}

/// The position with which a row is stored.
fn stands_at(row: i64, stride: u32) -> i64 {
    row * i64::from(stride) + i64::from(stride) - 1
}

impl Model {
    pub fn new(kinds: &[Kind]) -> Self {
        Self { tokens: vec![], stored: vec![BTreeSet::new(); kinds.len()], held: BTreeSet::from([0]) }
    }

    /// Whether the conversation may continue after `len` positions.
    pub fn may_continue(&self, kinds: &[Kind], len: usize) -> bool {
        len <= self.tokens.len()
            && kinds.iter().zip(&self.stored).all(|(kind, stored)| match *kind {
                Kind::Accumulator => self.held.contains(&len),
                Kind::Rows { stride, keep } => {
                    let end = len as i64;
                    let first = if let Keep::Last(n) = keep { end - i64::from(n) } else { 0 };
                    let mut needed = (0..end).filter(|row| (first..end).contains(&stands_at(*row, stride)));
                    needed.all(|row| stored.contains(&row))
                }
            })
    }

    /// A step has appended tokens; `marked` are lengths.
    pub fn append(&mut self, kinds: &[Kind], page: u32, tokens: &[u32], marked: &[usize]) {
        let begin = self.tokens.len();
        self.tokens.extend(tokens);
        let end = self.tokens.len() as i64;
        for (kind, stored) in kinds.iter().zip(&mut self.stored) {
            let Kind::Rows { stride, keep } = *kind else { continue };
            stored.extend((0..end).filter(|row| (begin as i64..end).contains(&stands_at(*row, stride))));
            let Keep::Last(n) = keep else { continue };
            let back = if marked.is_empty() { end - SLACK } else { (end - SLACK).min(begin as i64) };
            // A page goes as a whole, when its last row is older than all that may be asked for.
            let page_rows = i64::from(page.max(stride).div_ceil(stride));
            stored.retain(|row| stands_at(row / page_rows * page_rows + page_rows - 1, stride) >= back - i64::from(n));
        }
        self.held.retain(|len| *len == 0 || *len >= begin);
        self.held.extend(marked);
        self.held.insert(end as usize);
    }

    /// The same conversation after `len` positions.
    pub fn cut(&self, kinds: &[Kind], len: usize) -> Self {
        let mut cut = self.clone();
        cut.tokens.truncate(len);
        cut.held.retain(|held| *held <= len);
        for (kind, stored) in kinds.iter().zip(&mut cut.stored) {
            if let Kind::Rows { stride, .. } = *kind {
                stored.retain(|row| stands_at(*row, stride) < len as i64);
            }
        }
        cut
    }

    /// The same conversation from a snapshot.
    pub fn restored(&self) -> Self {
        let mut copy = self.clone();
        copy.held.retain(|len| *len == 0 || *len == self.tokens.len());
        copy
    }
}
