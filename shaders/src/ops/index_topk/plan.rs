//! Device form: scores of all rows that are seen into memory, as integers of the same order; then one workgroup a row chooses by their
//! digits. Rows of the step run in tiles where memory for their scores would grow too large.

use super::IndexTopkParams;
use crate::device::{Arg, Dispatch, Extent, Grid, KernelText, Per, Plan, PlanCall, Scratch, Seen};

pub(super) const KERNELS: &[KernelText] = &[
    KernelText { name: "index_marks", text: concat!(include_str!("index.glsl"), include_str!("marks.comp")), per: Per::One },
    KernelText { name: "index_scores", text: concat!(include_str!("index.glsl"), include_str!("scores.comp")), per: Per::One },
    KernelText { name: "index_blocks", text: concat!(include_str!("index.glsl"), include_str!("blocks.comp")), per: Per::One },
    KernelText { name: "index_select", text: concat!(include_str!("index.glsl"), include_str!("select.comp")), per: Per::One },
];

const FAULTS: &[&str] = &["row {detail} of the conversation was never stored", "the score of row {detail} of the index is not finite"];

const INVOCATIONS: u32 = 128;
/// Rows of the state of a workgroup that scores.
const SCORED: u32 = 16;
/// Words of scores, at most, where a single row needs no more.
const WORDS: u32 = 64 << 20;
/// Shared memory that every device has.
const SHARED_BYTES: u32 = 16 << 10;
/// Memory of the plan: keys of rows, bits of candidates, keys of blocks.
const KEYS: Arg = Arg::Scratch(0);
const MARKS: Arg = Arg::Scratch(1);
const BLOCKS: Arg = Arg::Scratch(2);

pub(super) fn plan(params: &IndexTopkParams, call: &PlanCall<'_>) -> Result<Plan, String> {
    let slots = (call.context / params.stride).max(1);
    let block = params.cand_block.max(1);
    let blocks = slots.div_ceil(block);
    let tile = (WORDS / slots).clamp(1, call.cap);
    let of = Of { params, call, block, slots, blocks, words: blocks.div_ceil(32), together: together(params, call)? };
    let mut dispatches = vec![];
    for row0 in (0..call.cap).step_by(tile as usize) {
        of.tile(row0, tile.min(call.cap - row0), &mut dispatches);
    }
    // A word for what no dispatch uses.
    let words = [slots, if params.cand_given { of.words } else { 1 }, if params.cand_out > 0 { blocks } else { 1 }];
    let scratch = words.map(|words| Scratch { words: u64::from(tile) * u64::from(words) });
    Ok(Plan { dispatches, scratch: scratch.into(), faults: FAULTS, ..Plan::default() })
}

/// Columns of a head.
fn width(params: &IndexTopkParams, call: &PlanCall<'_>) -> u32 {
    call.ins[0].width / params.heads
}

/// Heads that are multiplied at a time.
fn together(params: &IndexTopkParams, call: &PlanCall<'_>) -> Result<u32, String> {
    let width = width(params, call);
    // Queries, lanes of 16 teams and their sums.
    let head = 128 * width.div_ceil(32) + 16 * SCORED * 9 + 4 * SCORED;
    let fits = |together: &u32| together * head + 16 <= SHARED_BYTES;
    [4, 2, 1].into_iter().find(fits).ok_or_else(|| format!("heads of {width} columns are too wide for its kernel"))
}

/// What the dispatches of a plan share.
struct Of<'a> {
    params: &'a IndexTopkParams,
    call: &'a PlanCall<'a>,
    block: u32,
    /// Rows of the state that a row may see, their blocks, and words of a bit for each block.
    slots: u32,
    blocks: u32,
    words: u32,
    together: u32,
}

impl Of<'_> {
    /// The dispatches of some rows of the cap.
    fn tile(&self, row0: u32, count: u32, dispatches: &mut Vec<Dispatch>) {
        let rows = if count == self.call.cap { Extent::ROWS } else { Extent::Fixed(count) };
        if self.params.cand_given {
            dispatches.push(self.marks(row0, rows));
        }
        dispatches.push(self.scores(row0, rows));
        if self.params.cand_out > 0 {
            dispatches.extend([self.block_keys(row0, rows), self.select(true, row0, rows)]);
        }
        dispatches.push(self.select(false, row0, rows));
    }

    fn dispatch(&self, kernel: &'static str, invocations: u32, own: &[u32], args: Vec<Arg>, grid: Grid) -> Dispatch {
        let mut constants = vec![invocations, self.params.stride, self.block];
        constants.extend(own);
        Dispatch { kernel: kernel.into(), constants, args, grid }
    }

    fn marks(&self, row0: u32, rows: Extent) -> Dispatch {
        let input = 1 + usize::from(self.params.weighted);
        let args = vec![Arg::In(input), MARKS, Arg::Word(row0), Arg::Word(self.words)];
        self.dispatch("index_marks", INVOCATIONS, &[self.call.ins[input].width], args, [Extent::Fixed(1), rows, Extent::Fixed(1)])
    }

    /// One workgroup for every `per` rows of the state that are seen.
    fn seen(&self, per: u32) -> Extent {
        Extent::Seen { seen: Seen { stride: self.params.stride, window: 0 }, per, times: 1, plus: 0 }
    }

    fn scores(&self, row0: u32, rows: Extent) -> Dispatch {
        let params = self.params;
        let (weighted, given) = (u32::from(params.weighted), u32::from(params.cand_given));
        let constants = [params.heads, width(params, self.call), weighted, given, self.together];
        let mut args = vec![Arg::In(0)];
        match params.weighted {
            true => args.push(Arg::In(1)),
            false => args.extend([Arg::Null, Arg::Word(0)]),
        }
        args.extend([KEYS, MARKS, Arg::State(0), Arg::Float(params.scale), Arg::Word(row0), Arg::Word(self.slots), Arg::Word(self.words)]);
        self.dispatch("index_scores", INVOCATIONS, &constants, args, [self.seen(SCORED), rows, Extent::Fixed(1)])
    }

    fn block_keys(&self, row0: u32, rows: Extent) -> Dispatch {
        let args = vec![KEYS, BLOCKS, Arg::Word(row0), Arg::Word(self.slots), Arg::Word(self.blocks)];
        let grid = [self.seen(self.block.saturating_mul(INVOCATIONS)), rows, Extent::Fixed(1)];
        self.dispatch("index_blocks", INVOCATIONS, &[], args, grid)
    }

    /// The list, or the blocks that are given out.
    fn select(&self, blocks: bool, row0: u32, rows: Extent) -> Dispatch {
        let params = self.params;
        let out = usize::from(blocks);
        let (k, keys, slots) = if blocks { (params.cand_out, BLOCKS, self.blocks) } else { (params.k, KEYS, self.slots) };
        let constants = [k, self.call.outs[out].width, u32::from(blocks), u32::from(params.expand && !blocks)];
        let args = vec![Arg::Out(out), keys, Arg::Word(row0), Arg::Word(slots)];
        let invocations = if self.call.device.invocations >= 256 { 256 } else { INVOCATIONS };
        self.dispatch("index_select", invocations, &constants, args, [Extent::Fixed(1), rows, Extent::Fixed(1)])
    }
}
