//! The ports of a segment that has just run, as an observer finds them.

use std::cell::{OnceCell, RefCell};

use coli_base::{Error, Result};
use coli_plugin_api::describe::SegmentName;
use coli_shaders::contract::{Columns, RowAt};

use crate::program::{LinkedPort, Rows};

/// Fetches the words of a port's first rows from where the host does not see them.
pub(crate) trait PortSource {
    /// The words, or `None` where they are gone, because a later segment ran in the same go.
    fn words(&self, port: &LinkedPort, rows: usize) -> Result<Option<Vec<u32>>>;
}

/// Where ports' words are.
pub(crate) enum Words<'a> {
    /// In the host's memory, by slot.
    Slots(&'a [Vec<u32>]),
    /// Elsewhere: fetched when they are asked for, each port once.
    Fetched(&'a dyn PortSource, Vec<OnceCell<Option<Vec<u32>>>>),
}

/// The ports of a segment that has just run, for its rows of the step or for one slice of the wanted ones.
pub struct Ports<'a> {
    /// The segment.
    pub segment: SegmentName,
    /// The step's rows.
    pub tokens: &'a [RowAt],
    /// The wanted rows that this run was over.
    pub outs: &'a [RowAt],
    outputs: &'a [LinkedPort],
    words: Words<'a>,
    fault: RefCell<Option<Error>>,
}

impl<'a> Ports<'a> {
    pub(crate) fn in_slots(
        segment: SegmentName,
        tokens: &'a [RowAt],
        outs: &'a [RowAt],
        outputs: &'a [LinkedPort],
        slots: &'a [Vec<u32>],
    ) -> Self {
        Self { segment, tokens, outs, outputs, words: Words::Slots(slots), fault: RefCell::new(None) }
    }

    pub(crate) fn fetched(
        segment: SegmentName,
        tokens: &'a [RowAt],
        outs: &'a [RowAt],
        outputs: &'a [LinkedPort],
        source: &'a dyn PortSource,
    ) -> Self {
        let cells = outputs.iter().map(|_| OnceCell::new()).collect();
        Self { segment, tokens, outs, outputs, words: Words::Fetched(source, cells), fault: RefCell::new(None) }
    }

    /// The names of its ports.
    pub fn names(&self) -> Vec<String> {
        self.outputs.iter().map(|port| port.spec.name.clone()).collect()
    }

    /// The numbers of an output port and how many rows it has, `None` where the segment has no such port. Inner segments' ports are gone
    /// where several segments ran in one go.
    pub fn get(&self, name: &str) -> Option<(Columns<'_>, usize)> {
        let (number, port) = self.outputs.iter().enumerate().find(|(_, port)| port.spec.name == name)?;
        let rows = if port.spec.rows == Rows::Tokens { self.tokens.len() } else { self.outs.len() };
        let width = port.spec.width as usize;
        let words = match &self.words {
            Words::Slots(slots) => slots[port.slot].as_slice(),
            Words::Fetched(source, cells) => cells[number].get_or_init(|| self.fetch(*source, port, rows)).as_deref()?,
        };
        Some((Columns::new(words, width, 0, width), rows))
    }

    fn fetch(&self, source: &dyn PortSource, port: &LinkedPort, rows: usize) -> Option<Vec<u32>> {
        match source.words(port, rows) {
            Ok(words) => words,
            Err(error) => {
                self.fault.borrow_mut().get_or_insert(error);
                None
            }
        }
    }

    /// What an observer said, unless a port could not be fetched: that comes first.
    pub(crate) fn observed(self, result: Result<()>) -> Result<()> {
        match self.fault.into_inner() {
            Some(error) => Err(error),
            None => result,
        }
    }
}
