//! Device form: workgroups take some columns of a head's S through all rows of a conversation.

use super::{Delta, DeltaDecay, DeltaHeads, DeltaRate};
use crate::device::{Arg, Dispatch, Extent, KernelText, Per, Plan, PlanCall};

pub(super) const KERNELS: &[KernelText] = &[KernelText { name: "delta", text: include_str!("delta.comp"), per: Per::One }];

const FAULTS: &[&str] = &["no value before position {detail} of the conversation"];

/// Eight members for each of 16 columns.
const INVOCATIONS: u32 = 128;
const COLUMNS: u32 = 16;
/// Rows where a workgroup looks for the first one of a conversation.
const ROWS: u32 = 64;
/// Columns of a key for which the kernel has shared memory.
const K_WIDTH_MAX: usize = 480;

pub(super) fn plan(op: &Delta, call: &PlanCall<'_>) -> Result<Plan, String> {
    if op.k_width > K_WIDTH_MAX {
        return Err(format!("keys of {} columns, and its kernel has room for {K_WIDTH_MAX}", op.k_width));
    }
    let (params, heads) = (&op.params, op.heads as u32);
    let tiled = params.head_map == DeltaHeads::Tiled;
    let group = if tiled { params.key_heads } else { heads / params.key_heads };
    // Few rows are those of many conversations, as like as not.
    let rows = if call.cap < ROWS { 1 } else { ROWS };
    let flag = |of: bool| u32::from(of);
    let constants = vec![
        INVOCATIONS,
        op.k_width as u32,
        op.v_width as u32,
        group,
        flag(tiled),
        flag(params.decay == DeltaDecay::Bounded),
        flag(params.per_channel),
        flag(params.rate == DeltaRate::Negated),
        rows,
    ];
    let mut args: Vec<Arg> = (0..5).map(Arg::In).collect();
    args.extend([Arg::Out(0), Arg::Vector(0), Arg::Vector(1), Arg::StateMut(0), Arg::Float(params.bound)]);
    let columns = Extent::of(op.v_width as u32, COLUMNS);
    let grid = [columns, Extent::Fixed(heads), Extent::Rows { per: rows, times: 1 }];
    Ok(Plan { faults: FAULTS, ..Plan::one(Dispatch { kernel: "delta".into(), constants, args, grid }) })
}
