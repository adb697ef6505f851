//! Device form. Step rows: splits of what a row sees run beside each other, and a second kernel joins them. Prompt rows: one workgroup
//! walks a row's splits, with the same results; in fast mode, where no source is a list, workgroups take many rows together.

use super::{Attend, AttendParams, Source};
use crate::contract::RowClass;
use crate::device::{Arg, Dispatch, Extent, KernelText, Per, Plan, PlanCall, Scratch, Seen};

pub(super) const KERNELS: &[KernelText] = &[
    KernelText {
        name: "attend",
        text: concat!(include_str!("heads.glsl"), include_str!("located.glsl"), include_str!("attend.comp")),
        per: Per::One,
    },
    KernelText { name: "attend_join", text: concat!(include_str!("heads.glsl"), include_str!("join.comp")), per: Per::One },
    KernelText { name: "attend_flash", text: concat!(include_str!("heads.glsl"), include_str!("flash.comp")), per: Per::One },
    KernelText {
        name: "attend_flash_matrix",
        text: concat!(include_str!("heads.glsl"), include_str!("flash_matrix.comp")),
        per: Per::OneMatrix,
    },
];

/// Codes of a source are `3 * source` and the two that follow.
pub(super) const FAULTS: &[&str] = &[
    "source 0: row {detail} of the conversation was never stored or is gone",
    "source 0: {detail} in a list is neither a row nor -1",
    "source 0: row {detail} in a list is not complete",
    "source 1: row {detail} of the conversation was never stored or is gone",
    "source 1: {detail} in a list is neither a row nor -1",
    "source 1: row {detail} in a list is not complete",
];

pub(super) const INVOCATIONS: u32 = 128;
/// Rows of a split: a constant of the definition, on which bits depend.
pub(super) const SPLIT: u32 = 64;
/// Rows that run together as steps, at most.
const STEP_CAP: u32 = 16;
/// Shared memory that every device has.
const SHARED_BYTES: u32 = 16 << 10;
/// Words of the parts, at most, where a single row needs no more.
const PARTS_WORDS: u64 = 64 << 20;
/// A window up to this one has workgroups for all its splits, whether they are full or not.
const SHORT_WINDOW: u32 = 1024;

pub(super) fn plan(op: &Attend, call: &PlanCall<'_>) -> Result<Plan, String> {
    let flash = super::flash::dispatch(op, call).filter(|_| call.fast && call.class == RowClass::Prompt);
    if let Some(dispatch) = flash {
        return Ok(Plan { dispatches: vec![dispatch], faults: FAULTS, ..Plan::default() });
    }
    let of = Of { op, call, together: together(&op.params)? };
    if call.cap > STEP_CAP {
        return Ok(Plan { dispatches: vec![of.walk()], faults: FAULTS, ..Plan::default() });
    }
    let slots = op.sources.iter().map(|source| u64::from(of.most_splits(source))).sum::<u64>().max(1);
    let row = u64::from(op.params.heads) * slots * (u64::from(op.params.v_width) + 2);
    let tile = (PARTS_WORDS / row).clamp(1, u64::from(call.cap));
    if tile * row > u64::from(u32::MAX) {
        return Err(format!("attention over {} positions takes {row} numbers a row", call.context));
    }
    let (slots, tile) = (slots as u32, tile as u32);
    let mut dispatches = vec![];
    for row0 in (0..call.cap).step_by(tile as usize) {
        let rows = Rows { row0, count: tile.min(call.cap - row0), slots };
        dispatches.extend([of.split(rows), of.join(rows)]);
    }
    Ok(Plan { dispatches, scratch: vec![Scratch { words: u64::from(tile) * row }], faults: FAULTS, ..Plan::default() })
}

/// Query heads of a workgroup, which share the rows that are read.
fn together(params: &AttendParams) -> Result<u32, String> {
    let group = params.heads / params.kv_heads;
    let fixed = 16 * (SPLIT + 2 * 16 * 9) + 64;
    let head = 16 * (params.k_width.div_ceil(4) + params.v_width.div_ceil(4)) + 8 * SPLIT;
    let fits = |together: &u32| fixed + together * head <= SHARED_BYTES;
    let heads = [4, 2, 1].into_iter().filter(|together| *together <= group.next_power_of_two()).find(fits);
    heads.ok_or_else(|| format!("heads of {} and {} columns are too wide for its kernels", params.k_width, params.v_width))
}

/// Entries of a source's list; 0 where it is none.
fn entries(source: &Source, call: &PlanCall<'_>) -> u32 {
    source.list.map_or(0, |input| call.ins[input].width)
}

/// Constants that all kernels share, then a kernel's own.
pub(super) fn constants(op: &Attend, call: &PlanCall<'_>, invocations: u32, own: &[u32]) -> Vec<u32> {
    let params = &op.params;
    let group = params.heads / params.kv_heads;
    let (sources, sink) = (op.sources.len() as u32, u32::from(params.sink));
    let mut constants = vec![invocations, params.k_width, params.v_width, params.heads, group, sources, sink];
    for (index, columns) in [&params.first, &params.second].into_iter().enumerate() {
        let source = op.sources.get(index);
        let (stride, window) = source.map_or((1, 0), |source| (source.stride, source.window));
        constants.extend([stride, window, source.map_or(0, |source| entries(source, call)), columns.k_col0, columns.v_col0]);
    }
    constants.extend(own);
    constants
}

/// The arguments of two states, of which there may be one.
pub(super) fn states(op: &Attend) -> Vec<Arg> {
    match op.sources.len() {
        1 => vec![Arg::State(0), Arg::Null, Arg::Null],
        _ => vec![Arg::State(0), Arg::State(1)],
    }
}

/// The argument of the sinks, of which there may be none.
pub(super) fn sinks(op: &Attend) -> Arg {
    if op.params.sink { Arg::Vector(0) } else { Arg::Null }
}

/// The rows of two dispatches that belong together.
#[derive(Clone, Copy)]
struct Rows {
    /// The first one of the cap's.
    row0: u32,
    count: u32,
    /// Splits that there is room for, of each.
    slots: u32,
}

/// What the dispatches of a plan share.
struct Of<'a> {
    op: &'a Attend,
    call: &'a PlanCall<'a>,
    together: u32,
}

impl Of<'_> {
    /// Splits of a source that a row can see.
    fn most_splits(&self, source: &Source) -> u32 {
        if source.list.is_some() {
            return entries(source, self.call).div_ceil(SPLIT);
        }
        let all = (self.call.context / source.stride).div_ceil(SPLIT);
        if source.window == 0 { all } else { all.min(source.window / SPLIT + 2) }
    }

    /// As many workgroups as any row that runs has splits.
    fn splits(&self) -> Extent {
        let grows = |source: &&Source| source.list.is_none() && !(1..=SHORT_WINDOW).contains(&source.window);
        let fixed: u32 = self.op.sources.iter().filter(|source| !grows(source)).map(|source| self.most_splits(source)).sum();
        let growing: Vec<&Source> = self.op.sources.iter().filter(grows).collect();
        match growing[..] {
            [] => Extent::Fixed(fixed.max(1)),
            // The first and the last split of a window may be cut.
            [one] => {
                let plus = fixed + u32::from(one.window != 0);
                Extent::Seen { seen: Seen { stride: one.stride, window: one.window }, per: SPLIT, times: 1, plus }
            }
            _ => {
                let stride = growing.iter().map(|source| source.stride).min().unwrap_or(1);
                Extent::Seen { seen: Seen { stride, window: 0 }, per: SPLIT, times: growing.len() as u32, plus: fixed }
            }
        }
    }

    /// Workgroups for all heads.
    fn sets(&self) -> Extent {
        let params = &self.op.params;
        Extent::Fixed(params.kv_heads * (params.heads / params.kv_heads).div_ceil(self.together))
    }

    /// Arguments of `attend`, of which `results` are an operand and an address.
    fn args(&self, results: &[Arg], rows: Rows) -> Vec<Arg> {
        let mut args = vec![Arg::In(0)];
        args.extend(results);
        for index in 0..2 {
            match self.op.sources.get(index).and_then(|source| source.list) {
                Some(input) => args.push(Arg::In(input)),
                None => args.extend([Arg::Null, Arg::Word(0)]),
            }
        }
        args.extend(states(self.op));
        args.extend([sinks(self.op), Arg::Float(self.op.params.scale), Arg::Word(rows.row0), Arg::Word(rows.slots)]);
        args
    }

    fn walk(&self) -> Dispatch {
        let args = self.args(&[Arg::Out(0), Arg::Null], Rows { row0: 0, count: self.call.cap, slots: 0 });
        let grid = [self.sets(), Extent::ROWS, Extent::Fixed(1)];
        Dispatch { kernel: "attend".into(), constants: constants(self.op, self.call, INVOCATIONS, &[self.together, 1]), args, grid }
    }

    fn split(&self, rows: Rows) -> Dispatch {
        let args = self.args(&[Arg::Null, Arg::Word(0), Arg::Scratch(0)], rows);
        let grid = [self.sets(), self.rows(rows), self.splits()];
        Dispatch { kernel: "attend".into(), constants: constants(self.op, self.call, INVOCATIONS, &[self.together, 0]), args, grid }
    }

    fn join(&self, rows: Rows) -> Dispatch {
        let args = vec![Arg::Out(0), Arg::Scratch(0), sinks(self.op), Arg::Word(rows.row0), Arg::Word(rows.slots)];
        let columns = Extent::of(self.op.params.v_width, INVOCATIONS);
        let grid = [Extent::Fixed(self.op.params.heads), self.rows(rows), columns];
        Dispatch { kernel: "attend_join".into(), constants: constants(self.op, self.call, INVOCATIONS, &[]), args, grid }
    }

    fn rows(&self, rows: Rows) -> Extent {
        if rows.count == self.call.cap { Extent::ROWS } else { Extent::Fixed(rows.count) }
    }
}
