//! The pools against a driver that is a list of numbers and a map of every granule.

use std::collections::HashMap;

use proptest::prelude::*;

use super::MIB;
use super::pools::*;
use crate::fault::{Fault, Result};

/// A driver with so much memory.
#[derive(Default)]
struct Fake {
    room: u64,
    live: HashMap<u64, u64>,
    next: u64,
    asked: usize,
}

impl Blocks for Fake {
    type Block = u64;

    fn take(&mut self, _pool: usize, bytes: u64) -> Result<u64> {
        self.asked += 1;
        if bytes > self.room {
            return Err(Fault::Memory { what: "the driver is full".into() });
        }
        self.room -= bytes;
        self.next += 1;
        self.live.insert(self.next, bytes);
        Ok(self.next)
    }

    fn give(&mut self, _pool: usize, block: u64) {
        self.room += self.live.remove(&block).expect("a block goes back once");
    }
}

const RULES: Rules = Rules { limit: None, allocation: 1 << 40, allocations: 4096 };

fn pool(limit: Option<u64>, block: u64) -> PoolRules {
    PoolRules { name: "p", limit, counted: true, block }
}

fn fake(room: u64) -> Fake {
    Fake { room, ..Fake::default() }
}

#[test]
fn ranges_share_blocks_and_an_empty_block_goes_back() {
    let mut driver = fake(1 << 40);
    let mut pools = Pools::new(RULES, [pool(None, 256 * MIB)]);
    let ranges: Vec<Range> = (0..100).map(|_| pools.allocate(0, MIB + 1, &mut driver).unwrap()).collect();
    assert_eq!((driver.asked, pools.held(0).blocks, pools.held(0).held), (1, 1, 256 * MIB));
    assert_eq!(pools.held(0).used, 100 * (MIB + GRANULE));
    ranges.into_iter().for_each(|range| pools.free(range, &mut driver));
    assert_eq!((driver.live.len(), pools.held(0).held, pools.held(0).used), (0, 0, 0));
    assert_eq!(pools.held(0).peak, 100 * (MIB + GRANULE));
}

#[test]
fn the_smallest_range_that_fits_is_taken() {
    let mut driver = fake(1 << 40);
    let mut pools = Pools::new(RULES, [pool(None, 16 * MIB)]);
    let mut take = |bytes| pools.allocate(0, bytes, &mut driver).unwrap();
    let (large, _a, small, _b) = (take(4096), take(256), take(512), take(256));
    let (at_large, at_small) = (large.offset(), small.offset());
    pools.free(large, &mut driver);
    pools.free(small, &mut driver);
    assert_eq!(pools.allocate(0, 512, &mut driver).unwrap().offset(), at_small);
    assert_eq!(pools.allocate(0, 4096, &mut driver).unwrap().offset(), at_large);
}

#[test]
fn a_large_range_has_a_block_of_its_own() {
    let mut driver = fake(1 << 40);
    let mut pools = Pools::new(RULES, [pool(None, 256 * MIB)]);
    let range = pools.allocate(0, 300 * MIB + 1, &mut driver).unwrap();
    assert_eq!(pools.held(0).held, 300 * MIB + (64 << 10));
    pools.free(range, &mut driver);
    assert_eq!(pools.held(0).blocks, 0);
}

#[test]
fn under_a_limit_blocks_shrink_so_that_all_of_it_can_be_used() {
    for (own, all) in [(Some(10 * MIB), None), (None, Some(10 * MIB))] {
        let mut driver = fake(1 << 40);
        let mut pools = Pools::new(Rules { limit: all, ..RULES }, [pool(own, 256 * MIB)]);
        let ranges: Vec<Range> = std::iter::from_fn(|| pools.allocate(0, 100 << 10, &mut driver).ok()).collect();
        assert!(pools.held(0).held <= 10 * MIB);
        assert!(ranges.len() as u64 * (100 << 10) > 9 * MIB, "{} ranges", ranges.len());
        let fault = pools.allocate(0, 100 << 10, &mut driver).unwrap_err();
        assert!(fault.is_memory() && fault.to_string().contains("its limit leaves"), "{fault}");
        // A refusal leaves everything usable.
        ranges.into_iter().for_each(|range| pools.free(range, &mut driver));
        assert!(pools.allocate(0, 9 * MIB, &mut driver).is_ok());
    }
}

#[test]
fn what_does_not_count_is_outside_the_limit_of_all() {
    let mut driver = fake(1 << 40);
    let host = PoolRules { counted: false, ..pool(None, MIB) };
    let mut pools = Pools::new(Rules { limit: Some(2 * MIB), ..RULES }, [pool(None, MIB), host]);
    let _in_limit = pools.allocate(0, 2 * MIB, &mut driver).unwrap();
    assert!(pools.allocate(0, 256, &mut driver).is_err());
    assert!(pools.allocate(1, 8 * MIB, &mut driver).is_ok());
    assert_eq!(pools.counted(), 2 * MIB);
}

#[test]
fn the_drivers_limits_hold() {
    let mut driver = fake(1 << 40);
    let mut pools = Pools::new(Rules { allocation: 4 * MIB, allocations: 2, limit: None }, [pool(None, 256 * MIB)]);
    assert!(pools.allocate(0, 4 * MIB + 1, &mut driver).unwrap_err().to_string().contains("in one piece"));
    let (_a, _b) = (pools.allocate(0, 4 * MIB, &mut driver).unwrap(), pools.allocate(0, 3 * MIB, &mut driver).unwrap());
    assert!(pools.allocate(0, 3 * MIB, &mut driver).unwrap_err().to_string().contains("2 allocations"));
    assert!(driver.live.values().all(|&bytes| bytes <= 4 * MIB));
    assert!(matches!(pools.allocate(0, 0, &mut driver), Err(Fault::Wrong { .. })));
    assert!(matches!(pools.allocate(0, u64::MAX, &mut driver), Err(Fault::Wrong { .. })));
}

#[test]
fn a_full_driver_is_asked_for_less_and_then_not_again_until_memory_comes_back() {
    let mut driver = fake(20 * MIB);
    let mut pools = Pools::new(RULES, [pool(None, 256 * MIB), pool(None, 256 * MIB)]);
    let range = pools.allocate(0, 12 * MIB, &mut driver).unwrap();
    assert_eq!((driver.asked, pools.held(0).held), (2, 12 * MIB), "256 MiB refused, 12 given");
    assert!(pools.allocate(0, 12 * MIB, &mut driver).unwrap_err().is_memory());
    let asked = driver.asked;
    for _ in 0..100 {
        assert!(pools.allocate(0, 12 * MIB, &mut driver).unwrap_err().is_memory());
    }
    assert_eq!(driver.asked, asked, "a known refusal costs nothing");
    assert!(pools.allocate(0, MIB, &mut driver).is_ok(), "less may still fit");
    pools.free(range, &mut driver);
    assert!(pools.allocate(1, 12 * MIB, &mut driver).is_ok());
}

#[derive(Debug, Clone)]
enum Act {
    Take { pool: usize, bytes: u64 },
    Free { which: usize },
}

fn acts(steps: usize) -> impl Strategy<Value = Vec<Act>> {
    let size = prop_oneof![4 => 1..40_000u64, 2 => 1..(2 * MIB), 1 => 1..(20 * MIB)];
    let act = prop_oneof![
        3 => (0..2usize, size).prop_map(|(pool, bytes)| Act::Take { pool, bytes }),
        2 => any::<usize>().prop_map(|which| Act::Free { which }),
    ];
    prop::collection::vec(act, 1..steps)
}

/// Runs acts and holds every promise after each: ranges apart from each other and inside their blocks, books that add up, limits kept.
fn holds(acts: &[Act], rules: Rules, limits: [Option<u64>; 2], room: u64) {
    let mut driver = fake(room);
    let mut pools = Pools::new(rules, limits.map(|limit| pool(limit, 8 * MIB)));
    let mut live: Vec<(Range, u64, usize)> = Vec::new();
    // For every block, who has each granule.
    let mut owners: HashMap<u64, Vec<bool>> = HashMap::new();
    for act in acts {
        match *act {
            Act::Take { pool, bytes } => match pools.allocate(pool, bytes, &mut driver) {
                Err(fault) => assert!(fault.is_memory(), "{fault}"),
                Ok(range) => {
                    let block = *pools.block(&range);
                    assert!(range.bytes() >= bytes && range.offset() % GRANULE == 0 && range.bytes() % GRANULE == 0);
                    let size = usize::try_from(driver.live[&block] / GRANULE).unwrap();
                    let map = owners.entry(block).or_insert_with(|| vec![false; size]);
                    for granule in &mut map[span(&range)] {
                        assert!(!std::mem::replace(granule, true), "two ranges overlap");
                    }
                    live.push((range, block, pool));
                }
            },
            Act::Free { which } if !live.is_empty() => {
                let (range, block, _) = live.swap_remove(which % live.len());
                owners.get_mut(&block).unwrap()[span(&range)].fill(false);
                pools.free(range, &mut driver);
            }
            Act::Free { .. } => {}
        }
        owners.retain(|block, _| driver.live.contains_key(block));
        for (at, limit) in limits.iter().enumerate() {
            let used: u64 = live.iter().filter(|(.., pool)| *pool == at).map(|(range, ..)| range.bytes()).sum();
            assert_eq!(pools.held(at).used, used);
            assert!(pools.held(at).held <= limit.unwrap_or(u64::MAX));
        }
        assert_eq!(pools.counted(), driver.live.values().sum::<u64>());
        assert!(pools.counted() <= rules.limit.unwrap_or(u64::MAX) && driver.live.len() <= rules.allocations as usize);
        assert!(driver.live.values().all(|&bytes| bytes <= rules.allocation));
        let blocks_in_use: std::collections::HashSet<u64> = live.iter().map(|(_, block, _)| *block).collect();
        assert_eq!(blocks_in_use.len(), driver.live.len(), "an empty block was kept");
    }
    live.into_iter().for_each(|(range, ..)| pools.free(range, &mut driver));
    assert!(driver.live.is_empty() && driver.room == room && pools.counted() == 0);
}

fn span(range: &Range) -> std::ops::Range<usize> {
    let at = |bytes: u64| usize::try_from(bytes / GRANULE).unwrap();
    at(range.offset())..at(range.offset() + range.bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_acts_keeps_every_promise(
        acts in acts(200),
        own in prop::option::of(0..(64 * MIB)),
        all in prop::option::of(0..(64 * MIB)),
        allocation in (64u64 << 10)..(16 * MIB),
        allocations in 1..12u32,
        room in 0..(96 * MIB),
    ) {
        holds(&acts, Rules { limit: all, allocation, allocations }, [own, None], room);
    }
}

#[test]
fn forty_thousand_steps() {
    // A fixed run of a linear congruence, long enough for fragments of every kind.
    let mut state = 1u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let acts: Vec<Act> = (0..40_000)
        .map(|_| match next() % 2 {
            0 => Act::Take { pool: usize::try_from(next() % 2).unwrap(), bytes: 1 + next() % (1 << (8 + next() % 12)) },
            _ => Act::Free { which: usize::try_from(next()).unwrap() },
        })
        .collect();
    holds(&acts, RULES, [None, Some(32 * MIB)], 1 << 30);
}
