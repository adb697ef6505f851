//! Pages that come back by themselves.
//!
//! A page's number is valid in every arena of its pool. Whoever holds a [`Page`] keeps it: conversations and snapshots hold clones, and
//! when the last one is dropped, wherever that happens, the number is free again. So nothing can be forgotten, and a page may be written
//! exactly when nobody else holds it.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coli_base::units::Bytes;
use coli_base::{Error, Result};
use coli_shaders::contract::Stored;
use half::f16;
use half::slice::{HalfBitsSliceExt as _, HalfFloatSliceExt as _};

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

/// How the numbers of an arena are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// f32.
    Whole,
    /// binary16.
    Half,
}

/// Numbers of a page, and their form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Len {
    pub numbers: usize,
    pub form: Form,
}

impl Len {
    pub fn whole(numbers: usize) -> Self {
        Self { numbers, form: Form::Whole }
    }

    fn bytes(self) -> u64 {
        let bytes = if self.form == Form::Whole { 4 } else { 2 };
        (self.numbers as u64).saturating_mul(bytes)
    }
}

/// Where each arena begins in a page that has all of them, in words, and the words of the page. Arenas begin at multiples of 64 bytes.
pub(crate) fn word_offsets(lens: &[Len]) -> (Vec<u64>, u64) {
    let mut end = 0u64;
    let offsets = lens.iter().map(|len| {
        let start = end;
        end = start.saturating_add(len.bytes().div_ceil(64).saturating_mul(16));
        start
    });
    (offsets.collect(), end)
}

/// Pages of an arena, by page number.
#[derive(Debug)]
enum Arena {
    Whole(Vec<Box<[f32]>>),
    Half(Vec<Box<[u16]>>),
}

/// Pages in memory that the host reaches only by asking: a device's. What is asked for happens in that order, before the next step.
pub(crate) trait PageStore: fmt::Debug + Send + Sync {
    /// Adds a page; its number is how many there were before.
    fn make(&mut self) -> Result<()>;
    /// Fills a page, in all arenas.
    fn fill(&mut self, page: usize, with: f32);
    /// Copies the first numbers of a page to another, in one arena.
    fn copy(&mut self, arena: usize, from: usize, to: usize, numbers: usize);
    /// Writes numbers into a page of an arena.
    fn put(&mut self, arena: usize, page: usize, at: usize, numbers: &[f32]);
    /// Reads numbers from a page of an arena, after all that was asked for.
    fn read(&self, arena: usize, page: usize, at: usize, numbers: usize) -> Result<Vec<f32>>;
    /// Where a page is, for kernels.
    fn address(&self, page: usize) -> u64;
}

/// Makes the store of pages with such arenas.
pub(crate) type MakeStore<'a> = &'a dyn Fn(&[Len]) -> Box<dyn PageStore>;

/// Where pages are.
#[derive(Debug)]
enum Memory {
    Host(Vec<Arena>),
    Elsewhere(Box<dyn PageStore>),
}

/// Pages of several arenas under one set of numbers.
#[derive(Debug)]
pub(super) struct Pool {
    /// What a page is, for the error when there is no memory for another.
    what: String,
    /// A page in each arena.
    lens: Vec<Len>,
    memory: Memory,
    /// Pages made so far; the next page's number.
    made: usize,
    free: Arc<Free>,
}

impl Pool {
    /// Pages of these arenas, in the host's memory or in a store that is made for them.
    pub fn new(what: String, lens: Vec<Len>, elsewhere: Option<MakeStore<'_>>) -> Self {
        let arena = |len: &Len| if len.form == Form::Whole { Arena::Whole(vec![]) } else { Arena::Half(vec![]) };
        let memory = match elsewhere {
            Some(make) if !lens.is_empty() => Memory::Elsewhere(make(&lens)),
            _ => Memory::Host(lens.iter().map(arena).collect()),
        };
        Self { what, lens, memory, made: 0, free: Arc::default() }
    }

    /// Where a page is, for kernels; 0 in the host's memory.
    pub fn address(&self, page: &Page) -> u64 {
        match &self.memory {
            Memory::Host(_) => 0,
            Memory::Elsewhere(store) => store.address(page.number),
        }
    }

    /// Whether it has no arena, and so no use.
    pub fn is_empty(&self) -> bool {
        self.lens.is_empty()
    }

    /// A page in each arena.
    pub fn lens(&self) -> &[Len] {
        &self.lens
    }

    /// Arenas.
    pub fn arenas(&self) -> usize {
        self.lens.len()
    }

    /// Memory of a page in all arenas.
    pub fn page_bytes(&self) -> u64 {
        self.lens.iter().fold(0, |bytes, len| len.bytes().saturating_add(bytes))
    }

    /// Pages that somebody holds.
    #[cfg(test)]
    pub fn live(&self) -> usize {
        self.made - self.free.list().len()
    }

    /// A page that nobody else holds, filled with a number.
    pub fn filled(&mut self, with: f32) -> Result<Page> {
        let page = self.take()?;
        match &mut self.memory {
            Memory::Elsewhere(store) => store.fill(page.number, with),
            Memory::Host(arenas) => arenas.iter_mut().for_each(|arena| match arena {
                Arena::Whole(pages) => pages[page.number].fill(with),
                Arena::Half(pages) => pages[page.number].fill(f16::from_f32(with).to_bits()),
            }),
        }
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
        let arenas = match &mut self.memory {
            Memory::Host(arenas) => arenas,
            Memory::Elsewhere(store) => {
                store.make()?;
                self.made += 1;
                return Ok(self.made - 1);
            }
        };
        let mut added = Vec::with_capacity(self.lens.len());
        for len in &self.lens {
            let page = match len.form {
                Form::Whole => zeroed(len.numbers).map(|page| Arena::Whole(vec![page])),
                Form::Half => zeroed(len.numbers).map(|page| Arena::Half(vec![page])),
            };
            added.push(page.ok_or_else(|| {
                let (what, bytes) = (&self.what, Bytes(len.bytes()));
                Error::run(format!("no memory for another {what} ({bytes} a layer): make the context smaller with --ctx"))
            })?);
        }
        for (arena, page) in arenas.iter_mut().zip(added) {
            match (arena, page) {
                (Arena::Whole(pages), Arena::Whole(page)) => pages.extend(page),
                (Arena::Half(pages), Arena::Half(page)) => pages.extend(page),
                _ => unreachable!("both were made from one list of forms"),
            }
        }
        self.made += 1;
        Ok(self.made - 1)
    }

    /// A page of an arena, in the host's memory.
    pub fn stored(&self, arena: usize, page: &Page) -> Option<Stored<'_>> {
        let Memory::Host(arenas) = &self.memory else { return None };
        Some(match &arenas[arena] {
            Arena::Whole(pages) => Stored::Whole(&pages[page.number]),
            Arena::Half(pages) => Stored::Half(&pages[page.number]),
        })
    }

    /// Numbers of a page as f32, wherever it is and however they are stored.
    pub fn read(&self, arena: usize, page: &Page, at: Range<usize>) -> Result<Vec<f32>> {
        let arenas = match &self.memory {
            Memory::Host(arenas) => arenas,
            Memory::Elsewhere(store) => return store.read(arena, page.number, at.start, at.len()),
        };
        Ok(match &arenas[arena] {
            Arena::Whole(pages) => pages[page.number][at].to_vec(),
            Arena::Half(pages) => pages[page.number][at].reinterpret_cast::<f16>().to_f32_vec(),
        })
    }

    /// Writes numbers into a page from `at` on.
    pub fn put(&mut self, arena: usize, page: &Page, at: usize, numbers: &[f32]) {
        let arenas = match &mut self.memory {
            Memory::Host(arenas) => arenas,
            Memory::Elsewhere(store) => return store.put(arena, page.number, at, numbers),
        };
        match &mut arenas[arena] {
            Arena::Whole(pages) => pages[page.number][at..at + numbers.len()].copy_from_slice(numbers),
            Arena::Half(pages) => {
                let to = &mut pages[page.number][at..at + numbers.len()];
                to.reinterpret_cast_mut::<f16>().convert_from_f32_slice(numbers);
            }
        }
    }

    /// A page's numbers in an arena of whole numbers.
    pub fn numbers(&self, arena: usize, page: &Page) -> Option<&[f32]> {
        match &self.memory {
            Memory::Host(arenas) => match &arenas[arena] {
                Arena::Whole(pages) => Some(&pages[page.number]),
                Arena::Half(_) => None,
            },
            Memory::Elsewhere(_) => None,
        }
    }

    /// The same for writing.
    pub fn numbers_mut(&mut self, arena: usize, page: &Page) -> Option<&mut [f32]> {
        match &mut self.memory {
            Memory::Host(arenas) => match &mut arenas[arena] {
                Arena::Whole(pages) => Some(&mut pages[page.number]),
                Arena::Half(_) => None,
            },
            Memory::Elsewhere(_) => None,
        }
    }

    /// Copies the first numbers of a page to another, in one arena.
    pub fn copy(&mut self, arena: usize, from: &Page, to: &Page, len: usize) {
        let arenas = match &mut self.memory {
            Memory::Host(arenas) => arenas,
            Memory::Elsewhere(store) => return store.copy(arena, from.number, to.number, len),
        };
        match &mut arenas[arena] {
            Arena::Whole(pages) => copy(pages, from, to, len),
            Arena::Half(pages) => copy(pages, from, to, len),
        }
    }

    /// Copies all numbers of a page.
    pub fn copy_all(&mut self, arena: usize, from: &Page, to: &Page) {
        self.copy(arena, from, to, self.lens[arena].numbers);
    }
}

fn copy<T: Copy>(pages: &mut [Box<[T]>], from: &Page, to: &Page, len: usize) {
    if let Ok([from, to]) = pages.get_disjoint_mut([from.number, to.number]) {
        to[..len].copy_from_slice(&from[..len]);
    }
}

/// `None` where there is no memory for them.
fn zeroed<T: Clone + Default>(len: usize) -> Option<Box<[T]>> {
    let mut numbers = Vec::new();
    numbers.try_reserve_exact(len).ok()?;
    numbers.resize(len, T::default());
    Some(numbers.into_boxed_slice())
}
