//! What an op sees of the states.

use coli_base::Result;
use coli_plugin_api::program::StateId;
use coli_shaders::contract::{StateAccess, Stored};

use super::conversation::Conversation;
use super::table::{Class, Table};
use super::{Place, States};

/// The states of one op.
pub(crate) struct OpStates<'a> {
    pub states: &'a mut States,
    pub ids: &'a [StateId],
}

impl OpStates<'_> {
    fn place(&self, state: usize) -> Option<Place> {
        let id = self.ids.get(state)?;
        self.states.places.get(id.0 as usize).copied()
    }

    /// The class, table and arena in which a row may be written.
    fn writable(&mut self, state: usize, conv: u32, index: u32) -> Option<(&mut Class, &Table, usize)> {
        let Place::Rows { class, arena } = self.place(state)? else { return None };
        let conversation = self.states.conversations.get(conv as usize)?.as_ref()?;
        let of = &mut self.states.classes[class];
        // Rows from before the step may be shared.
        (index >= conversation.len / of.stride).then(|| (of, &conversation.tables[class], arena))
    }
}

/// The class, conversation and arena in which a row may be read.
fn readable(states: &States, place: Place, conv: u32, index: u32) -> Option<(&Class, &Conversation, usize, usize)> {
    let Place::Rows { class, arena } = place else { return None };
    let conversation = states.conversations.get(conv as usize)?.as_ref()?;
    let of = &states.classes[class];
    // Older rows may still be stored, which depends on the page's size and must not be seen.
    (index >= of.first_readable(conversation.len)).then_some((of, conversation, class, arena))
}

/// A row as f32, wherever it is and in whatever form.
pub(super) fn numbers(states: &States, place: Place, conv: u32, index: u32) -> Option<Result<Vec<f32>>> {
    let (of, conversation, class, arena) = readable(states, place, conv, index)?;
    conversation.tables[class].read(of, arena, index)
}

impl StateAccess for OpStates<'_> {
    fn row(&self, state: usize, conv: u32, index: u32) -> Option<&[f32]> {
        let (of, conversation, class, arena) = readable(self.states, self.place(state)?, conv, index)?;
        conversation.tables[class].row(of, arena, index)
    }

    fn row_mut(&mut self, state: usize, conv: u32, index: u32) -> Option<&mut [f32]> {
        let (of, table, arena) = self.writable(state, conv, index)?;
        table.row_mut(of, arena, index)
    }

    fn has(&self, state: usize, conv: u32, index: u32) -> bool {
        let place = self.place(state).and_then(|place| readable(self.states, place, conv, index));
        place.is_some_and(|(of, conversation, class, _)| conversation.tables[class].has(of, index))
    }

    fn page_rows(&self, state: usize) -> u32 {
        match self.place(state) {
            Some(Place::Rows { class, .. }) => self.states.classes[class].page_rows,
            _ => 1,
        }
    }

    fn page(&self, state: usize, conv: u32, page: u32) -> Option<Stored<'_>> {
        let Place::Rows { class, arena } = self.place(state)? else { return None };
        let conversation = self.states.conversations.get(conv as usize)?.as_ref()?;
        conversation.tables[class].page(&self.states.classes[class], arena, page)
    }

    fn put(&mut self, state: usize, conv: u32, index: u32, col0: usize, numbers: &[f32]) -> bool {
        let place = self.writable(state, conv, index);
        place.is_some_and(|(of, table, arena)| table.put(of, arena, index, col0, numbers))
    }

    fn accumulator(&mut self, state: usize, conv: u32, pos: u32) -> Option<&mut [f32]> {
        let Place::Accumulator { arena } = self.place(state)? else { return None };
        let (_, growth) = self.states.growing.iter_mut().find(|(growing, _)| growing.0 == conv)?;
        growth.advance.as_mut()?.value(&mut self.states.accumulators, arena, pos)
    }
}
