//! Pages that come back by themselves.
//!
//! A page's number is valid in every arena of its pool. Whoever holds a [`Page`] keeps it: conversations and snapshots hold clones, and
//! when the last one is dropped, wherever that happens, the number is free again. So nothing can be forgotten, and a page may be written
//! exactly when nobody else holds it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coli_base::units::Bytes;
use coli_base::{Error, Result};

/// Numbers of pages that nobody holds.
#[derive(Debug, Default)]
struct Free(Mutex<Vec<usize>>);

impl Free {
    fn list(&self) -> MutexGuard<'_, Vec<usize>> {
        // A list of numbers is whole whatever its holder did.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Hold {
    number: usize,
    free: Arc<Free>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.free.list().push(self.number);
    }
}

/// A held page. A clone holds the same page.
#[derive(Debug, Clone)]
pub(super) struct Page {
    number: usize,
    hold: Arc<Hold>,
}

impl Page {
    /// Whether somebody else holds it too.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.hold) > 1
    }
}

/// Pages of several arenas under one set of numbers.
#[derive(Debug)]
pub(super) struct Pool {
    /// What a page is, for the error when there is no memory for another.
    what: String,
    /// Numbers of a page in each arena.
    lens: Vec<usize>,
    /// Pages of each arena, by page number.
    arenas: Vec<Vec<Box<[f32]>>>,
    /// Pages made so far; the next page's number.
    made: usize,
    free: Arc<Free>,
}

impl Pool {
    pub fn new(what: String, lens: Vec<usize>) -> Self {
        let arenas = lens.iter().map(|_| vec![]).collect();
        Self { what, lens, arenas, made: 0, free: Arc::default() }
    }

    /// Whether it has no arena, and so no use.
    pub fn is_empty(&self) -> bool {
        self.lens.is_empty()
    }

    /// Arenas.
    pub fn arenas(&self) -> usize {
        self.lens.len()
    }

    /// Memory of a page in all arenas.
    pub fn page_bytes(&self) -> u64 {
        self.lens.iter().fold(0, |bytes, len| (*len as u64).saturating_mul(4).saturating_add(bytes))
    }

    /// Pages that somebody holds.
    #[cfg(test)]
    pub fn live(&self) -> usize {
        self.made - self.free.list().len()
    }

    /// A page that nobody else holds, filled with a number.
    pub fn filled(&mut self, with: f32) -> Result<Page> {
        let page = self.take()?;
        self.arenas.iter_mut().for_each(|arena| arena[page.number].fill(with));
        Ok(page)
    }

    /// A page that nobody else holds; whatever stood there before is in it.
    pub fn take(&mut self) -> Result<Page> {
        let known = self.free.list().pop();
        let number = if let Some(number) = known { number } else { self.make()? };
        Ok(Page { number, hold: Arc::new(Hold { number, free: self.free.clone() }) })
    }

    /// Adds a page to every arena, or to none.
    fn make(&mut self) -> Result<usize> {
        let mut added = Vec::with_capacity(self.lens.len());
        for len in &self.lens {
            let mut rows = Vec::new();
            rows.try_reserve_exact(*len).map_err(|_| {
                let (what, bytes) = (&self.what, Bytes(*len as u64 * 4));
                Error::run(format!("no memory for another {what} ({bytes} a layer): make the context smaller with --ctx"))
            })?;
            rows.resize(*len, 0.0);
            added.push(rows.into_boxed_slice());
        }
        self.arenas.iter_mut().zip(added).for_each(|(arena, rows)| arena.push(rows));
        self.made += 1;
        Ok(self.made - 1)
    }

    /// A page's numbers in an arena.
    pub fn numbers(&self, arena: usize, page: &Page) -> &[f32] {
        &self.arenas[arena][page.number]
    }

    /// The same for writing.
    pub fn numbers_mut(&mut self, arena: usize, page: &Page) -> &mut [f32] {
        &mut self.arenas[arena][page.number]
    }

    /// Copies the first numbers of a page to another, in one arena.
    pub fn copy(&mut self, arena: usize, from: &Page, to: &Page, len: usize) {
        let pages = &mut self.arenas[arena];
        if let Ok([from, to]) = pages.get_disjoint_mut([from.number, to.number]) {
            to[..len].copy_from_slice(&from[..len]);
        }
    }
}
