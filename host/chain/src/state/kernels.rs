//! What kernels are told of the states: where rows lie in pages, and where pages are.

use coli_plugin_api::program::StateId;

use super::pool::{Form, word_offsets};
use super::{Place, States};

/// How a state's numbers lie in a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The class whose page tables it has; `None` for an accumulator.
    pub class: Option<usize>,
    /// Positions of a row.
    pub stride: u32,
    /// Numbers of a row; 0 for an accumulator.
    pub width: u32,
    /// Rows of a page.
    pub page_rows: u32,
    /// Whether numbers are binary16.
    pub half: bool,
    /// Its first word in a page.
    pub word: u32,
}

/// A conversation's rows in the states of a class.
pub(crate) struct Pages {
    /// The first row that may be read.
    pub readable: u32,
    /// The first row of the first page.
    pub first: u32,
    /// The pages' addresses.
    pub addresses: Vec<u64>,
}

impl States {
    /// How a state lies in its pages; `None` where it is not on this executor.
    pub(crate) fn layout(&self, id: StateId) -> Option<Layout> {
        match *self.places.get(id.0 as usize)? {
            Place::Rows { class, arena } => {
                let of = &self.classes[class];
                let (width, form) = of.row(arena);
                let word = word_offsets(of.pool.lens()).0[arena];
                Some(Layout {
                    class: Some(class),
                    stride: of.stride,
                    width: width as u32,
                    page_rows: of.page_rows,
                    half: form == Form::Half,
                    word: word as u32,
                })
            }
            Place::Accumulator { arena } => {
                let word = word_offsets(self.accumulators.lens()).0[arena] as u32;
                Some(Layout { class: None, stride: 1, width: 0, page_rows: 1, half: false, word })
            }
            Place::Elsewhere => None,
        }
    }

    /// Classes of rows states.
    pub(crate) fn classes(&self) -> usize {
        self.classes.len()
    }

    /// A conversation's pages of a class, those of the step that runs included.
    pub(crate) fn pages(&self, class: usize, conv: u32) -> Option<Pages> {
        let conversation = self.conversations.get(conv as usize)?.as_ref()?;
        let of = &self.classes[class];
        let (first, addresses) = conversation.tables[class].addresses(of);
        Some(Pages { readable: of.first_readable(conversation.len), first, addresses: addresses.collect() })
    }

    /// Whether any state is an accumulator.
    pub(crate) fn has_accumulators(&self) -> bool {
        !self.accumulators.is_empty()
    }

    /// The page with the values that a conversation's accumulators have in the step that runs, and the page that gets a copy of them after
    /// the row at a position, or 0.
    pub(crate) fn accumulator_pages(&self, conv: u32, pos: u32) -> Option<(u64, u64)> {
        let (_, growth) = self.growing.iter().find(|(growing, _)| growing.0 == conv)?;
        let (values, kept) = growth.advance.as_ref()?.pages(pos + 1);
        Some((self.accumulators.address(values), kept.map_or(0, |page| self.accumulators.address(page))))
    }

    /// Notes that every accumulator has seen every row of the step.
    pub(crate) fn advanced(&mut self) {
        self.growing.iter_mut().filter_map(|(_, growth)| growth.advance.as_mut()).for_each(super::accumulators::Advance::all_advanced);
    }
}
