//! What conversations remember: rows and accumulators.
//!
//! **Rows**: a row for every r positions, stored with the last position of its group, at index `position / r`; all of them, or those of the
//! last n positions. `append` writes them by position. An op reads them by position: of a state that keeps n, those of the last n
//! positions before the step's first row, and the step's own. A conversation can continue after p positions if all rows that a row at p
//! may read are stored: always where all are kept; else at least 8 positions back from the last step's end, and from its beginning when
//! it had marked rows.
//!
//! **Accumulators**: one buffer. An `update` is given the value before its row and advances it, row after row. A conversation can
//! continue after p positions if the value there is held: that before the last step, those after its marked rows, that after its end,
//! and the zeros at 0.
//!
//! To *continue after p positions* is one rule ([`conversation`]), and four operations follow it: a rewind, a snapshot, a conversation
//! restored from one, a conversation that shares another's prefix. What the rule does not allow is an error and changes nothing.
//!
//! Rows lie in pages ([`table`]), accumulators in pages of their own ([`accumulators`]); copies of a conversation share pages, whose count
//! of holders says when they are free ([`pool`]). A step begins with [`States::begin`], which makes room, and ends with
//! [`States::commit`] or [`States::abandon`]. What is held before it is never changed within it: rows of a shared page are copied first,
//! accumulators always. So a step that fails changes nothing. A rewind leaves rows behind in the last page; whoever appends those
//! positions again overwrites them, before an op that may see them runs.

mod access;
mod accumulators;
mod conversation;
mod history;
mod kernels;
mod pool;
mod table;

use std::sync::Arc;

use coli_base::units::Bytes;
use coli_base::{Error, Result};
use coli_plugin_api::describe::{Description, Keep, StateKind};
use coli_plugin_api::program::StateId;

pub(crate) use access::OpStates;
use conversation::{Conversation, Growth};
pub(crate) use history::History;
pub(crate) use kernels::Layout;
use pool::Pool;
pub(crate) use pool::{Form, Len, MakeStore, PageStore, word_offsets};
use table::Class;

/// Positions of a page, where no test asks for less.
pub const PAGE_POSITIONS: u32 = 64;

/// A conversation's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConvId(pub u32);

/// A conversation as it was, to be continued any number of times. It holds pages, not copies of rows, until it is dropped.
#[derive(Debug)]
pub struct Snapshot {
    conversation: Conversation,
    owner: Arc<()>,
}

impl Snapshot {
    /// Positions that the conversation had.
    pub fn positions(&self) -> u32 {
        self.conversation.len
    }
}

/// How a conversation grows in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grow {
    pub conv: ConvId,
    /// Positions that it has afterwards.
    pub len: u32,
    /// Its tokens at the new positions.
    pub tokens: Vec<u32>,
    /// Positions, ascending, after which it must be possible to continue.
    pub marked: Vec<u32>,
}

/// Numbers of a row of each state of a class, and how they are stored.
type RowsOfClass = Vec<(usize, Form)>;

/// Where a state's numbers are.
#[derive(Debug, Clone, Copy)]
enum Place {
    Rows {
        class: usize,
        arena: usize,
    },
    Accumulator {
        arena: usize,
    },
    /// On another executor.
    Elsewhere,
}

/// The states of all conversations on one executor.
pub struct States {
    /// Positions that a conversation may have.
    context_max: u32,
    /// Where each state is.
    places: Vec<Place>,
    classes: Vec<Class>,
    accumulators: Pool,
    conversations: Vec<Option<Conversation>>,
    /// The conversations that grow in the step that runs now.
    growing: Vec<(ConvId, Growth)>,
    /// Tells its own snapshots from those of other states.
    owner: Arc<()>,
}

impl States {
    /// No conversations yet. `page_positions` is [`PAGE_POSITIONS`] but in tests; `context_max` bounds every conversation.
    pub fn new(description: &Description, page_positions: u32, context_max: u32) -> Self {
        Self::of(description, |_| true, |_| false, page_positions, context_max, None)
    }

    /// Room for the states that `held` names; the others are on another executor. Rows of those that `half` names are stored as binary16.
    /// Pages are in the host's memory, or in the stores that `elsewhere` makes.
    pub(crate) fn of(
        description: &Description,
        held: impl Fn(StateId) -> bool,
        half: impl Fn(StateId) -> bool,
        page_positions: u32,
        context_max: u32,
        elsewhere: Option<MakeStore<'_>>,
    ) -> Self {
        assert!(page_positions > 0, "a page has positions");
        let mut classes: Vec<(u32, Keep, RowsOfClass)> = vec![];
        let mut accumulators = vec![];
        let mut places = vec![];
        for (index, state) in description.states.iter().enumerate() {
            places.push(match &state.kind {
                _ if !held(StateId(index as u32)) => Place::Elsewhere,
                StateKind::Rows { parts, stride, keep } => {
                    let class = classes.iter().position(|(s, k, _)| (s, k) == (stride, keep)).unwrap_or_else(|| {
                        classes.push((*stride, *keep, vec![]));
                        classes.len() - 1
                    });
                    let rows = &mut classes[class].2;
                    let form = if half(StateId(index as u32)) { Form::Half } else { Form::Whole };
                    rows.push((parts.iter().map(|part| part.width as usize).sum(), form));
                    Place::Rows { class, arena: rows.len() - 1 }
                }
                StateKind::Accumulator { shape } => {
                    accumulators.push(Len::whole(shape.iter().map(|len| *len as usize).product()));
                    Place::Accumulator { arena: accumulators.len() - 1 }
                }
            });
        }
        let classes = classes.into_iter().map(|(stride, keep, rows)| Class::new(stride, keep, page_positions, rows, elsewhere));
        let accumulators = Pool::new("conversation's accumulators".into(), accumulators, elsewhere);
        let classes = classes.collect();
        Self { context_max, places, classes, accumulators, conversations: vec![], growing: vec![], owner: Arc::default() }
    }

    /// Memory that a conversation of `positions` takes: its rows, and three values of its accumulators, which are the one before the last
    /// step, the present one, and the one that a step works on. Rows of the step itself in states that keep the last n, until it ends, and
    /// values after marked rows come on top. What is too much for a number is the largest one, which no memory holds.
    pub fn conversation_bytes(&self, positions: u32) -> Bytes {
        let rows = self.classes.iter().map(|class| class.pages_of(positions).saturating_mul(class.pool.page_bytes()));
        let accumulators = self.accumulators.page_bytes().saturating_mul(3);
        Bytes(rows.fold(accumulators, u64::saturating_add))
    }

    /// A new, empty conversation.
    pub fn open(&mut self) -> ConvId {
        self.add(Conversation::new(self.classes.len()))
    }

    /// A conversation that begins at a position, with nothing before it to be read: a test's way to stand anywhere at once.
    pub fn open_at(&mut self, pos: u32) -> ConvId {
        let mut conversation = Conversation::new(self.classes.len());
        conversation.len = pos;
        conversation.tokens = History::starting_at(pos);
        conversation.tables.iter_mut().zip(&self.classes).for_each(|(table, class)| table.begin(class, pos));
        self.add(conversation)
    }

    fn add(&mut self, conversation: Conversation) -> ConvId {
        let free = self.conversations.iter().position(Option::is_none);
        let slot = free.unwrap_or_else(|| {
            self.conversations.push(None);
            self.conversations.len() - 1
        });
        self.conversations[slot] = Some(conversation);
        ConvId(slot as u32)
    }

    /// Forgets a conversation; pages that nobody else holds are free.
    pub fn close(&mut self, conv: ConvId) {
        if let Some(slot) = self.conversations.get_mut(conv.0 as usize) {
            *slot = None;
        }
    }

    /// Positions that a conversation has, `None` where there is no such conversation.
    pub fn len(&self, conv: ConvId) -> Option<u32> {
        self.conversation(conv).ok().map(|conversation| conversation.len)
    }

    /// Positions that any conversation may have.
    pub fn context_max(&self) -> u32 {
        self.context_max
    }

    /// A row of a rows state, of the step that runs now or an earlier one; `None` where there is none.
    pub(crate) fn step_row(&self, id: StateId, conv: u32, index: u32) -> Option<Result<Vec<f32>>> {
        access::numbers(self, *self.places.get(id.0 as usize)?, conv, index)
    }

    /// A conversation's tokens, those of a step that has not ended included.
    pub(crate) fn history(&self, conv: ConvId) -> Result<&History> {
        Ok(&self.conversation(conv)?.tokens)
    }

    /// An error where [`Self::rewind`] would be one.
    pub(crate) fn check_rewind(&self, conv: ConvId, len: u32) -> Result<()> {
        self.cut(conv, len).map(drop)
    }

    /// Forgets the positions from `len` on. An error where the states' rules do not allow it; then nothing has changed.
    pub fn rewind(&mut self, conv: ConvId, len: u32) -> Result<()> {
        let cut = self.cut(conv, len)?;
        self.conversations[conv.0 as usize] = Some(cut);
        Ok(())
    }

    /// A conversation as it is now. It takes no memory but for what the conversation itself lets go later.
    pub fn snapshot(&self, conv: ConvId) -> Result<Snapshot> {
        Ok(Snapshot { conversation: self.conversation(conv)?.clone().without_past(), owner: self.owner.clone() })
    }

    /// A new conversation that continues from a snapshot of these states. Its accumulators are known where it stands and at 0 only.
    pub fn restore(&mut self, snapshot: &Snapshot) -> ConvId {
        assert!(Arc::ptr_eq(&self.owner, &snapshot.owner), "a snapshot of other states");
        self.add(snapshot.conversation.clone())
    }

    /// A new conversation with the first `len` positions of another one. An error where the states' rules do not allow it.
    pub fn share_prefix(&mut self, conv: ConvId, len: u32) -> Result<ConvId> {
        let cut = self.cut(conv, len)?;
        Ok(self.add(cut))
    }

    fn cut(&self, conv: ConvId, len: u32) -> Result<Conversation> {
        self.conversation(conv)?.cut(&self.classes, &self.accumulators, len)
    }

    fn conversation(&self, conv: ConvId) -> Result<&Conversation> {
        let slot = self.conversations.get(conv.0 as usize).and_then(Option::as_ref);
        slot.ok_or_else(|| Error::run(format!("conversation {} is not open", conv.0)))
    }

    /// Makes room for a step; each conversation stands in it once. Nothing has changed when it fails.
    pub(crate) fn begin(&mut self, step: &[Grow]) -> Result<()> {
        self.abandon();
        let result = step.iter().try_for_each(|grow| self.begin_one(grow));
        if result.is_err() {
            self.abandon();
        }
        result
    }

    fn begin_one(&mut self, grow: &Grow) -> Result<()> {
        if grow.len > self.context_max {
            let (len, max) = (grow.len, self.context_max);
            return Err(Error::run(format!("{len} positions do not fit a context of {max}: make it larger with --ctx")));
        }
        self.conversation(grow.conv)?;
        if let Some(conversation) = &mut self.conversations[grow.conv.0 as usize] {
            let growth = conversation.grow(&mut self.classes, &mut self.accumulators, grow)?;
            self.growing.push((grow.conv, growth));
        }
        Ok(())
    }

    /// An error where an op of the step has left an accumulator behind.
    pub(crate) fn check_commit(&self) -> Result<()> {
        for (conv, growth) in &self.growing {
            if let Some((arena, pos)) = growth.unfinished() {
                let fault = format!("accumulator {arena} of conversation {} was not advanced by the row at position {pos}", conv.0);
                return Err(Error::run(fault));
            }
        }
        Ok(())
    }

    /// Ends a step that has run: its conversations have grown. When it fails, because an op left an accumulator behind, none has.
    pub(crate) fn commit(&mut self) -> Result<()> {
        self.check_commit()?;
        for (conv, growth) in std::mem::take(&mut self.growing) {
            if let Some(conversation) = &mut self.conversations[conv.0 as usize] {
                conversation.finish(&self.classes, growth);
            }
        }
        Ok(())
    }

    /// Ends a step that failed: its conversations are as they were.
    pub(crate) fn abandon(&mut self) {
        for (conv, _) in std::mem::take(&mut self.growing) {
            if let Some(conversation) = &mut self.conversations[conv.0 as usize] {
                conversation.abandon(&self.classes);
            }
        }
    }

    /// Pages that conversations and snapshots hold, of rows and of accumulators.
    #[cfg(test)]
    pub(crate) fn live_pages(&self) -> (usize, usize) {
        (self.classes.iter().map(|class| class.pool.live()).sum(), self.accumulators.live())
    }
}

#[cfg(test)]
mod tests;
