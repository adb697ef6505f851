//! Ranges in large blocks. One block is one allocation of the driver: few of them, since a submit pays for each, and the driver allows only
//! so many. Pure over [`Blocks`], so that tests drive it without a device.
//!
//! Best fit, neighbours joined when freed, and a block that is empty goes back at once. Every range begins at a multiple of [`GRANULE`]. An
//! error changes nothing: what was allocated stays usable.

use std::collections::{BTreeMap, BTreeSet};

use super::MIB;
use crate::fault::{Fault, Result};

/// Ranges begin at multiples of this and take multiples of it: enough for every kernel's widest load and for every binding.
pub const GRANULE: u64 = 256;

/// Blocks made for one large range are a multiple of this.
const PAGE: u64 = 64 << 10;

/// Blocks shrink to this under a limit, and no further unless a limit leaves less.
const LEAST_BLOCK: u64 = MIB;

/// Who hands out blocks: the driver, or a test.
pub trait Blocks {
    /// A block.
    type Block;
    /// Takes a block of exactly so many bytes. A fault of kind memory means that there is no room for it.
    fn take(&mut self, pool: usize, bytes: u64) -> Result<Self::Block>;
    /// Gives it back.
    fn give(&mut self, pool: usize, block: Self::Block);
}

/// What a pool may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolRules {
    /// For messages.
    pub name: &'static str,
    /// What its blocks may come to.
    pub limit: Option<u64>,
    /// Whether its blocks count towards the limit of all.
    pub counted: bool,
    /// The size of a block where nothing makes it smaller.
    pub block: u64,
}

/// What all pools together may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// What the blocks of pools that count may come to.
    pub limit: Option<u64>,
    /// Bytes of one block at most: the driver's.
    pub allocation: u64,
    /// Blocks at a time: the driver's.
    pub allocations: u32,
}

/// A range that is in use. It must go back through [`Pools::free`].
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Range {
    pool: usize,
    block: u32,
    offset: u64,
    bytes: u64,
}

impl Range {
    /// Where it begins in its block.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Its bytes, a multiple of [`GRANULE`].
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// What a pool holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// Bytes of its blocks.
    pub held: u64,
    /// Bytes of ranges in use.
    pub used: u64,
    /// The most that was ever in use.
    pub peak: u64,
    /// Blocks.
    pub blocks: usize,
    /// The largest free range.
    pub largest_free: u64,
}

struct Block<B> {
    block: B,
    bytes: u64,
    /// Free ranges by their offset.
    free: BTreeMap<u64, u64>,
}

struct Pool<B> {
    rules: PoolRules,
    blocks: BTreeMap<u32, Block<B>>,
    next: u32,
    /// Free ranges of all blocks by size, block and offset: the first that is large enough is the best fit.
    sizes: BTreeSet<(u64, u32, u64)>,
    held: u64,
    used: u64,
    peak: u64,
    /// The smallest block that the driver refused since memory last came back. Asking again is slow, and the answer known.
    refused: Option<u64>,
}

/// The pools of a device.
pub struct Pools<B> {
    pools: Vec<Pool<B>>,
    rules: Rules,
}

impl<B> Pools<B> {
    /// Pools without a block.
    pub fn new(rules: Rules, pools: impl IntoIterator<Item = PoolRules>) -> Self {
        let empty =
            |rules| Pool { rules, blocks: BTreeMap::new(), next: 0, sizes: BTreeSet::new(), held: 0, used: 0, peak: 0, refused: None };
        Self { pools: pools.into_iter().map(empty).collect(), rules }
    }

    /// Allocates a range of at least so many bytes.
    pub fn allocate(&mut self, pool: usize, bytes: u64, source: &mut impl Blocks<Block = B>) -> Result<Range> {
        let bytes = match bytes.checked_next_multiple_of(GRANULE) {
            Some(bytes) if bytes > 0 => bytes,
            _ => return Err(Fault::wrong(format!("{bytes} bytes of device memory cannot be allocated"))),
        };
        let fit = self.pools[pool].sizes.range((bytes, 0, 0)..).next().copied();
        let (_, block, offset) = match fit {
            Some(fit) => fit,
            None => self.grow(pool, bytes, source)?,
        };
        let pool_at = pool;
        let pool = &mut self.pools[pool];
        pool.carve(block, offset, bytes);
        pool.used += bytes;
        pool.peak = pool.peak.max(pool.used);
        Ok(Range { pool: pool_at, block, offset, bytes })
    }

    /// Frees a range; a block that is then empty goes back.
    pub fn free(&mut self, range: Range, source: &mut impl Blocks<Block = B>) {
        let pool = &mut self.pools[range.pool];
        pool.used -= range.bytes;
        if let Some(block) = pool.restore(&range) {
            pool.held -= block.bytes;
            source.give(range.pool, block.block);
            // What came back may serve any pool.
            self.pools.iter_mut().for_each(|pool| pool.refused = None);
        }
    }

    /// The block that a range lies in.
    pub fn block(&self, range: &Range) -> &B {
        &self.pools[range.pool].blocks[&range.block].block
    }

    /// What a pool holds.
    pub fn held(&self, pool: usize) -> Held {
        let pool = &self.pools[pool];
        let largest_free = pool.sizes.last().map_or(0, |&(bytes, ..)| bytes);
        Held { held: pool.held, used: pool.used, peak: pool.peak, blocks: pool.blocks.len(), largest_free }
    }

    /// Bytes of the blocks that count.
    pub fn counted(&self) -> u64 {
        self.pools.iter().filter(|pool| pool.rules.counted).map(|pool| pool.held).sum()
    }

    /// Changes what a pool's blocks may come to. What it holds above that stays.
    pub fn set_limit(&mut self, pool: usize, limit: Option<u64>) {
        self.pools[pool].rules.limit = limit;
    }

    /// A new block for a range, as one free range of it.
    fn grow(&mut self, at: usize, bytes: u64, source: &mut impl Blocks<Block = B>) -> Result<(u64, u32, u64)> {
        let name = self.pools[at].rules.name;
        let refuse = |why: String| Err(Fault::Memory { what: format!("{bytes} bytes of {name}: {why}") });
        if bytes > self.rules.allocation {
            return refuse(format!("the driver allows {} in one piece", self.rules.allocation));
        }
        let blocks: usize = self.pools.iter().map(|pool| pool.blocks.len()).sum();
        if blocks >= usize::try_from(self.rules.allocations).unwrap_or(usize::MAX) {
            return refuse(format!("the driver allows {blocks} allocations"));
        }
        let room = self.room(at);
        if bytes > room {
            return refuse(format!("its limit leaves {room}"));
        }
        if self.pools[at].refused.is_some_and(|refused| refused <= bytes) {
            return refuse("the driver has refused as much before".into());
        }
        let wanted = self.block_bytes(at, bytes, room);
        let least = bytes.next_multiple_of(PAGE).min(room).min(self.rules.allocation).max(bytes);
        let (block, size) = match source.take(at, wanted) {
            Ok(block) => (block, wanted),
            Err(fault) if fault.is_memory() && least < wanted => match source.take(at, least) {
                Ok(block) => (block, least),
                Err(fault) => return Err(self.note_refusal(at, bytes, fault)),
            },
            Err(fault) => return Err(self.note_refusal(at, bytes, fault)),
        };
        let pool = &mut self.pools[at];
        let id = pool.next;
        pool.next += 1;
        pool.held += size;
        pool.blocks.insert(id, Block { block, bytes: size, free: BTreeMap::from([(0, size)]) });
        pool.sizes.insert((size, id, 0));
        Ok((size, id, 0))
    }

    fn note_refusal(&mut self, at: usize, bytes: u64, fault: Fault) -> Fault {
        if fault.is_memory() {
            let pool = &mut self.pools[at];
            pool.refused = Some(pool.refused.map_or(bytes, |refused| refused.min(bytes)));
        }
        fault
    }

    /// What limits leave for a pool's next block.
    fn room(&self, at: usize) -> u64 {
        let pool = &self.pools[at];
        let own = pool.rules.limit.map_or(u64::MAX, |limit| limit.saturating_sub(pool.held));
        let all = self.rules.limit.filter(|_| pool.rules.counted).map_or(u64::MAX, |limit| limit.saturating_sub(self.counted()));
        own.min(all) / GRANULE * GRANULE
    }

    /// The size of a new block. A range of more than half a block has one of its own. Under a limit a block is an eighth of it at most, so
    /// that what fits does not depend on how blocks fall; and near the limit it is what is left.
    fn block_bytes(&self, at: usize, bytes: u64, room: u64) -> u64 {
        let pool = &self.pools[at].rules;
        let limit = [pool.limit, self.rules.limit.filter(|_| pool.counted)].into_iter().flatten().min();
        let mut block = pool.block.min(self.rules.allocation / GRANULE * GRANULE);
        if let Some(limit) = limit {
            block = block.min((limit / 8 / PAGE * PAGE).max(LEAST_BLOCK));
        }
        let block = block.min(room);
        if bytes > block / 2 { bytes.next_multiple_of(PAGE).min(room).min(self.rules.allocation).max(bytes) } else { block }
    }
}

impl<B> Pool<B> {
    /// Takes the first `bytes` of a free range.
    fn carve(&mut self, id: u32, offset: u64, bytes: u64) {
        let Some(block) = self.blocks.get_mut(&id) else { unreachable!("sizes name only blocks that are held") };
        let Some(length) = block.free.remove(&offset) else { unreachable!("sizes name only free ranges") };
        self.sizes.remove(&(length, id, offset));
        if length > bytes {
            block.free.insert(offset + bytes, length - bytes);
            self.sizes.insert((length - bytes, id, offset + bytes));
        }
    }

    /// Makes a range free again, joined with its free neighbours; the block itself when that empties it.
    fn restore(&mut self, range: &Range) -> Option<Block<B>> {
        let Some(block) = self.blocks.get_mut(&range.block) else { unreachable!("a range's block is held") };
        let (mut offset, mut bytes) = (range.offset, range.bytes);
        if let Some((&before, &length)) = block.free.range(..offset).next_back().filter(|(before, length)| **before + **length == offset) {
            block.free.remove(&before);
            self.sizes.remove(&(length, range.block, before));
            (offset, bytes) = (before, bytes + length);
        }
        if let Some(length) = block.free.remove(&(offset + bytes)) {
            self.sizes.remove(&(length, range.block, offset + bytes));
            bytes += length;
        }
        if bytes == block.bytes {
            return self.blocks.remove(&range.block);
        }
        block.free.insert(offset, bytes);
        self.sizes.insert((bytes, range.block, offset));
        None
    }
}
