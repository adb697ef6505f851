//! Rows states: which rows a conversation has, and in which pages.
//!
//! States of one stride and one rule of what they keep form a class: their rows come and go together, so that one page table a
//! conversation serves them all. A row stands at the last position of its group: with stride r, row i is stored with position
//! `i * r + r - 1`.

use std::collections::VecDeque;

use coli_base::Result;
use coli_plugin_api::describe::Keep;
use coli_shaders::contract::Stored;

use super::pool::{Form, Len, MakeStore, Page, Pool};

/// Positions that a conversation may always go back, beyond what its next row may read.
pub(super) const SLACK: u32 = 8;

/// States whose rows come and go together.
#[derive(Debug)]
pub(super) struct Class {
    pub stride: u32,
    pub keep: Keep,
    /// Rows of a page.
    pub page_rows: u32,
    /// Numbers of a row of each of its states.
    widths: Vec<usize>,
    pub pool: Pool,
}

impl Class {
    /// A page has `page_positions`, or `stride` if that is more, rounded up to whole groups.
    pub fn new(stride: u32, keep: Keep, page_positions: u32, rows: Vec<(usize, Form)>, elsewhere: Option<MakeStore<'_>>) -> Self {
        let page_rows = page_positions.div_ceil(stride);
        let what = format!("{} positions of the cache", u64::from(page_rows) * u64::from(stride));
        let lens = rows.iter().map(|(width, form)| Len { numbers: width * page_rows as usize, form: *form }).collect();
        let widths = rows.into_iter().map(|(width, _)| width).collect();
        Self { stride, keep, page_rows, widths, pool: Pool::new(what, lens, elsewhere) }
    }

    /// Numbers of a row of one of its states, and their form.
    pub fn row(&self, arena: usize) -> (usize, Form) {
        (self.widths[arena], self.pool.lens()[arena].form)
    }

    /// Rows that `len` positions have: one for each complete group.
    fn rows(&self, len: u32) -> u32 {
        len / self.stride
    }

    /// The first row that a row at position `len` may read: the first one that stands at one of the last n positions before it.
    pub fn first_readable(&self, len: u32) -> u32 {
        match self.keep {
            Keep::All => 0,
            Keep::Last(n) => self.rows(len.saturating_sub(n)),
        }
    }

    /// Pages that a conversation of `len` positions holds between two steps, at most.
    pub fn pages_of(&self, len: u32) -> u64 {
        let all = u64::from(self.rows(len).div_ceil(self.page_rows));
        match self.keep {
            Keep::All => all,
            Keep::Last(n) => {
                let kept = (u64::from(n) + u64::from(SLACK)).div_ceil(u64::from(self.stride));
                all.min((kept - 1).div_ceil(u64::from(self.page_rows)) + 1)
            }
        }
    }
}

/// A conversation's rows in the states of a class.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    /// The first row that is stored; all later ones are, up to the conversation's end.
    low: u32,
    /// How many pages have gone, or never were, before those of `pages`.
    gone: u32,
    pages: VecDeque<Page>,
}

impl Table {
    /// Lets an empty table begin at a position, with nothing before it.
    pub fn begin(&mut self, class: &Class, pos: u32) {
        self.low = class.rows(pos);
        self.gone = self.low / class.page_rows;
    }

    /// Whether a row at position `len`, which is not after the conversation's end, finds all that it may read.
    pub fn can_continue(&self, class: &Class, len: u32) -> bool {
        let first = class.first_readable(len);
        first >= self.low || first >= class.rows(len)
    }

    /// The first row that is stored.
    pub fn low(&self) -> u32 {
        self.low
    }

    /// Forgets rows after `len` positions.
    pub fn truncate(&mut self, class: &Class, len: u32) {
        let end = class.rows(len);
        let pages = end.div_ceil(class.page_rows);
        self.pages.truncate(pages.saturating_sub(self.gone) as usize);
        if self.pages.is_empty() {
            self.gone = end / class.page_rows;
        }
        self.low = self.low.min(end);
    }

    /// Makes room for the rows from position `len` to `to`: pages for them, and a copy of a page that somebody else holds too.
    pub fn grow(&mut self, class: &mut Class, len: u32, to: u32) -> Result<()> {
        let (first, end) = (class.rows(len), class.rows(to));
        if first == end {
            return Ok(());
        }
        let (page, row) = (first / class.page_rows - self.gone, first % class.page_rows);
        if let Some(shared) = self.pages.get_mut(page as usize).filter(|page| page.is_shared()) {
            let own = class.pool.filled(f32::NAN)?;
            for (arena, width) in class.widths.iter().enumerate() {
                class.pool.copy(arena, shared, &own, row as usize * width);
            }
            *shared = own;
        }
        let wanted = (end.div_ceil(class.page_rows) - self.gone) as usize;
        while self.pages.len() < wanted {
            // A number nobody wrote is NaN, so that it cannot look like an answer.
            self.pages.push_back(class.pool.filled(f32::NAN)?);
        }
        Ok(())
    }

    /// Lets pages go that hold nothing which a conversation that goes back to `len` positions may need.
    pub fn forget(&mut self, class: &Class, len: u32) {
        let needed = class.first_readable(len) / class.page_rows;
        while self.gone < needed {
            self.pages.pop_front();
            self.gone += 1;
        }
        self.low = self.low.max(self.gone * class.page_rows);
    }

    /// The numbers of a row, `None` where there is no room for it, or where it is not stored as f32.
    pub fn row<'a>(&self, class: &'a Class, arena: usize, index: u32) -> Option<&'a [f32]> {
        let (page, at) = self.locate(class, arena, index)?;
        Some(&class.pool.numbers(arena, page)?[at])
    }

    /// The same for writing.
    pub fn row_mut<'a>(&self, class: &'a mut Class, arena: usize, index: u32) -> Option<&'a mut [f32]> {
        let (page, at) = self.locate(class, arena, index)?;
        Some(&mut class.pool.numbers_mut(arena, page)?[at])
    }

    /// A page as it is stored.
    pub fn page<'a>(&self, class: &'a Class, arena: usize, page: u32) -> Option<Stored<'a>> {
        let page = self.pages.get(page.checked_sub(self.gone)? as usize)?;
        class.pool.stored(arena, page)
    }

    /// A row as f32, wherever it is; `None` where there is no room for it.
    pub fn read(&self, class: &Class, arena: usize, index: u32) -> Option<Result<Vec<f32>>> {
        let (page, at) = self.locate(class, arena, index)?;
        Some(class.pool.read(arena, page, at))
    }

    /// The first row of the first page, and where each page is, for kernels.
    pub fn addresses(&self, class: &Class) -> (u32, impl Iterator<Item = u64>) {
        (self.gone * class.page_rows, self.pages.iter().map(|page| class.pool.address(page)))
    }

    /// Whether there is room for a row.
    pub fn has(&self, class: &Class, index: u32) -> bool {
        (index / class.page_rows).checked_sub(self.gone).is_some_and(|page| (page as usize) < self.pages.len())
    }

    /// Writes a part of a row, from a column; `false` where there is no room for it.
    pub fn put(&self, class: &mut Class, arena: usize, index: u32, col0: usize, numbers: &[f32]) -> bool {
        let Some((page, at)) = self.locate(class, arena, index) else { return false };
        let fits = at.len().checked_sub(col0).is_some_and(|room| room >= numbers.len());
        if fits {
            class.pool.put(arena, page, at.start + col0, numbers);
        }
        fits
    }

    fn locate(&self, class: &Class, arena: usize, index: u32) -> Option<(&Page, std::ops::Range<usize>)> {
        let page = self.pages.get((index / class.page_rows).checked_sub(self.gone)? as usize)?;
        let (width, row) = (class.widths[arena], (index % class.page_rows) as usize);
        Some((page, row * width..(row + 1) * width))
    }
}
