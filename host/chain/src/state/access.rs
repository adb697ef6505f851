//! What an op sees of the states.

use coli_plugin_api::program::StateId;
use coli_shaders::contract::StateAccess;

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
}

pub(super) fn row(states: &States, place: Place, conv: u32, index: u32) -> Option<&[f32]> {
    let Place::Rows { class, arena } = place else { return None };
    let conversation = states.conversations.get(conv as usize)?.as_ref()?;
    let of = &states.classes[class];
    // Older rows may still be stored, which depends on the page's size and must not be seen.
    if index < of.first_readable(conversation.len) {
        return None;
    }
    conversation.tables[class].row(of, arena, index)
}

impl StateAccess for OpStates<'_> {
    fn row(&self, state: usize, conv: u32, index: u32) -> Option<&[f32]> {
        row(self.states, self.place(state)?, conv, index)
    }

    fn row_mut(&mut self, state: usize, conv: u32, index: u32) -> Option<&mut [f32]> {
        let Place::Rows { class, arena } = self.place(state)? else { return None };
        let conversation = self.states.conversations.get(conv as usize)?.as_ref()?;
        let of = &mut self.states.classes[class];
        // Rows from before the step may be shared.
        if index < conversation.len / of.stride {
            return None;
        }
        conversation.tables[class].row_mut(of, arena, index)
    }

    fn accumulator(&mut self, state: usize, conv: u32, pos: u32) -> Option<&mut [f32]> {
        let Place::Accumulator { arena } = self.place(state)? else { return None };
        let (_, growth) = self.states.growing.iter_mut().find(|(growing, _)| growing.0 == conv)?;
        growth.advance.as_mut()?.value(&mut self.states.accumulators, arena, pos)
    }
}
