//! What conversations remember: rows of every state, in pages.
//!
//! A page holds a fixed number of positions, and its number is valid in the arena of every state, so that one page table a conversation
//! serves all layers. Growing, rewinding and dropping are operations on the table. Room is made before a step and never within one. A
//! new page is filled with NaN, so that reading a row that was never stored cannot look like an answer.
//!
//! Reads are by position: a row that a rewind left behind is overwritten by whoever appends that position again, before an op that may
//! see the position runs.

use coli_base::units::Bytes;
use coli_base::{Error, Result};
use coli_plugin_api::describe::{Description, StateKind};
use coli_plugin_api::program::StateId;
use coli_shaders::contract::StateAccess;

/// Positions of a page, where no test asks for less.
pub const PAGE_POSITIONS: u32 = 64;

/// A conversation's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConvId(pub u32);

/// The states of all conversations on one executor.
pub struct States {
    page_positions: u32,
    /// Positions that a conversation may have.
    context_max: u32,
    /// Numbers of a row of each state.
    widths: Vec<usize>,
    /// Pages of each state, by page number.
    arenas: Vec<Vec<Box<[f32]>>>,
    /// Pages made so far; the next page's number.
    pages: usize,
    free_pages: Vec<usize>,
    conversations: Vec<Option<Conversation>>,
}

#[derive(Debug, Default, Clone)]
struct Conversation {
    pages: Vec<usize>,
    len: u32,
}

impl States {
    /// No conversations yet. `page_positions` is [`PAGE_POSITIONS`] but in tests; `context_max` bounds every conversation.
    pub fn new(description: &Description, page_positions: u32, context_max: u32) -> Self {
        assert!(page_positions > 0, "a page has positions");
        let width = |kind: &StateKind| match kind {
            StateKind::Rows { parts, .. } => parts.iter().map(|part| part.width as usize).sum(),
            StateKind::Accumulator { .. } => unreachable!("a program with accumulators is refused"),
        };
        let widths: Vec<usize> = description.states.iter().map(|state| width(&state.kind)).collect();
        let arenas = widths.iter().map(|_| vec![]).collect();
        Self { page_positions, context_max, widths, arenas, pages: 0, free_pages: vec![], conversations: vec![] }
    }

    /// Memory that a conversation of `positions` takes.
    pub fn conversation_bytes(&self, positions: u32) -> Bytes {
        let pages = u64::from(positions.div_ceil(self.page_positions));
        let row: usize = self.widths.iter().sum();
        Bytes(pages * u64::from(self.page_positions) * row as u64 * 4)
    }

    /// A new, empty conversation.
    pub fn open(&mut self) -> ConvId {
        let free = self.conversations.iter().position(Option::is_none);
        let slot = free.unwrap_or_else(|| {
            self.conversations.push(None);
            self.conversations.len() - 1
        });
        self.conversations[slot] = Some(Conversation::default());
        ConvId(slot as u32)
    }

    /// Forgets a conversation; its pages are free.
    pub fn close(&mut self, conv: ConvId) {
        if let Some(conversation) = self.conversations.get_mut(conv.0 as usize).and_then(Option::take) {
            self.free_pages.extend(conversation.pages);
        }
    }

    /// Positions that a conversation has, `None` where there is no such conversation.
    pub fn len(&self, conv: ConvId) -> Option<u32> {
        self.conversation(conv).map(|conversation| conversation.len)
    }

    /// Positions that any conversation may have.
    pub fn context_max(&self) -> u32 {
        self.context_max
    }

    /// Makes room for positions below `positions`. Nothing has changed when it fails.
    pub fn reserve(&mut self, conv: ConvId, positions: u32) -> Result<()> {
        if positions > self.context_max {
            return Err(Error::run(format!(
                "{positions} positions do not fit a context of {}: make it larger with --ctx",
                self.context_max
            )));
        }
        let wanted = positions.div_ceil(self.page_positions) as usize;
        let have = self.conversation(conv).map_or(0, |conversation| conversation.pages.len());
        let missing = wanted.saturating_sub(have);
        while self.free_pages.len() < missing {
            self.add_page()?;
        }
        let pages = self.free_pages.split_off(self.free_pages.len() - missing);
        for page in &pages {
            self.arenas.iter_mut().for_each(|arena| arena[*page].fill(f32::NAN));
        }
        let conversation = self.conversations.get_mut(conv.0 as usize).and_then(Option::as_mut);
        conversation.unwrap_or_else(|| panic!("conversation {} is open", conv.0)).pages.extend(pages);
        Ok(())
    }

    /// Notes that a conversation now has `len` positions.
    pub fn commit(&mut self, conv: ConvId, len: u32) {
        if let Some(conversation) = self.conversations.get_mut(conv.0 as usize).and_then(Option::as_mut) {
            conversation.len = len;
        }
    }

    /// Forgets the positions from `len` on; pages with nothing left are free.
    pub fn rewind(&mut self, conv: ConvId, len: u32) {
        let keep = len.div_ceil(self.page_positions) as usize;
        if let Some(conversation) = self.conversations.get_mut(conv.0 as usize).and_then(Option::as_mut) {
            conversation.len = conversation.len.min(len);
            if conversation.pages.len() > keep {
                self.free_pages.extend(conversation.pages.split_off(keep));
            }
        }
    }

    fn conversation(&self, conv: ConvId) -> Option<&Conversation> {
        self.conversations.get(conv.0 as usize)?.as_ref()
    }

    /// Adds a page to every arena, or to none.
    fn add_page(&mut self) -> Result<()> {
        let mut added = Vec::with_capacity(self.widths.len());
        for width in &self.widths {
            let len = width * self.page_positions as usize;
            let mut rows = Vec::new();
            rows.try_reserve_exact(len).map_err(|_| {
                let bytes = Bytes(len as u64 * 4);
                Error::run(format!(
                    "no memory for another {} positions of the cache ({bytes} a layer): make the context smaller with --ctx",
                    self.page_positions
                ))
            })?;
            rows.resize(len, 0.0);
            added.push(rows.into_boxed_slice());
        }
        self.arenas.iter_mut().zip(added).for_each(|(arena, rows)| arena.push(rows));
        self.free_pages.push(self.pages);
        self.pages += 1;
        Ok(())
    }

    /// Page number and first number of a row in its page.
    fn locate(&self, state: StateId, conv: u32, index: u32) -> Option<(usize, usize)> {
        let conversation = self.conversation(ConvId(conv))?;
        let page = *conversation.pages.get((index / self.page_positions) as usize)?;
        Some((page, (index % self.page_positions) as usize * self.widths[state.0 as usize]))
    }
}

/// The states of one op.
pub(crate) struct OpStates<'a> {
    pub states: &'a mut States,
    pub ids: &'a [StateId],
}

impl StateAccess for OpStates<'_> {
    fn row(&self, state: usize, conv: u32, index: u32) -> Option<&[f32]> {
        let id = self.ids[state];
        let (page, start) = self.states.locate(id, conv, index)?;
        Some(&self.states.arenas[id.0 as usize][page][start..][..self.states.widths[id.0 as usize]])
    }

    fn row_mut(&mut self, state: usize, conv: u32, index: u32) -> Option<&mut [f32]> {
        let id = self.ids[state];
        let (page, start) = self.states.locate(id, conv, index)?;
        let width = self.states.widths[id.0 as usize];
        Some(&mut self.states.arenas[id.0 as usize][page][start..][..width])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coli_plugin_api::describe::{Keep, RowPart, SegmentName, State};
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn description() -> Description {
        let state = |width| State {
            role: "kv".into(),
            owner: SegmentName::Layer(0),
            shared: false,
            kind: StateKind::Rows { parts: vec![RowPart { width, may_round: true }], stride: 1, keep: Keep::All },
        };
        Description { states: vec![state(1), state(3)], ..Description::default() }
    }

    #[derive(Debug, Clone)]
    enum Act {
        Open,
        Grow(usize, u32),
        Rewind(usize, u32),
        Close(usize),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            1 => Just(Act::Open),
            4 => (0usize..4, 1u32..20).prop_map(|(conv, more)| Act::Grow(conv, more)),
            2 => (0usize..4, 0u32..40).prop_map(|(conv, len)| Act::Rewind(conv, len)),
            1 => (0usize..4).prop_map(Act::Close),
        ];
        prop::collection::vec(act, 1..60)
    }

    /// Writes a number that is unique to the writing into every row from `from` to `to`.
    fn write(states: &mut States, conv: ConvId, from: u32, to: u32, stamp: &mut f32, model: &mut HashMap<(u32, u32), f32>) {
        let ids = [StateId(0), StateId(1)];
        for index in from..to {
            *stamp += 1.0;
            for state in 0..2 {
                let mut op = OpStates { states, ids: &ids };
                op.row_mut(state, conv.0, index).unwrap().fill(*stamp);
            }
            model.insert((conv.0, index), *stamp);
        }
    }

    proptest! {
        /// Against a plain map, for random histories and page sizes: every live row is the last one written there, in every state.
        #[test]
        fn rows_are_those_of_a_plain_map(acts in acts(), page in 2u32..65) {
            let mut states = States::new(&description(), page, 1000);
            let mut model: HashMap<(u32, u32), f32> = HashMap::new();
            let mut open: Vec<ConvId> = vec![];
            let mut stamp = 0.0;
            for act in acts {
                match act {
                    Act::Open => open.push(states.open()),
                    Act::Grow(at, more) if !open.is_empty() => {
                        let conv = open[at % open.len()];
                        let len = states.len(conv).unwrap();
                        states.reserve(conv, len + more).unwrap();
                        write(&mut states, conv, len, len + more, &mut stamp, &mut model);
                        states.commit(conv, len + more);
                    }
                    Act::Rewind(at, len) if !open.is_empty() => {
                        let conv = open[at % open.len()];
                        states.rewind(conv, len);
                        model.retain(|(other, index), _| *other != conv.0 || *index < len);
                    }
                    Act::Close(at) if !open.is_empty() => {
                        let conv = open.swap_remove(at % open.len());
                        states.close(conv);
                        model.retain(|(other, _), _| *other != conv.0);
                    }
                    _ => {}
                }
            }
            let ids = [StateId(0), StateId(1)];
            for conv in &open {
                let len = states.len(*conv).unwrap();
                prop_assert_eq!(len as usize, model.keys().filter(|(other, _)| *other == conv.0).count());
            }
            let op = OpStates { states: &mut states, ids: &ids };
            for ((conv, index), stamp) in model {
                for state in 0..2 {
                    let row = op.row(state, conv, index).unwrap();
                    prop_assert!(row.iter().all(|number| *number == stamp), "conversation {} position {}: {:?}, not {}", conv, index, row, stamp);
                }
            }
        }
    }

    #[test]
    fn a_page_that_was_used_before_starts_as_nan() {
        let mut states = States::new(&description(), 2, 10);
        let first = states.open();
        states.reserve(first, 2).unwrap();
        write(&mut states, first, 0, 2, &mut 0.0, &mut HashMap::new());
        states.close(first);
        let second = states.open();
        states.reserve(second, 1).unwrap();
        let ids = [StateId(1)];
        let op = OpStates { states: &mut states, ids: &ids };
        assert!(op.row(0, second.0, 0).unwrap().iter().all(|number| number.is_nan()));
        assert!(op.row(0, second.0, 2).is_none(), "a position without a page");
    }

    #[test]
    fn the_context_is_a_bound_that_changes_nothing() {
        let mut states = States::new(&description(), 4, 10);
        let conv = states.open();
        assert!(states.reserve(conv, 11).unwrap_err().text.contains("context of 10"));
        assert_eq!(states.len(conv), Some(0));
        assert_eq!(states.conversation_bytes(9), Bytes(3 * 4 * 4 * 4));
    }
}
