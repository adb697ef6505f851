//! Device form: a workgroup a row, which holds all scores in shared memory.

use super::RouteParams;
use crate::device::{Arg, Dispatch, Extent, KernelText, Per, Plan, PlanCall};

pub(super) const KERNELS: &[KernelText] = &[KernelText { name: "route", text: include_str!("route.comp"), per: Per::One }];

const FAULTS: &[&str] = &[
    "a router's scores are not finite in row {row} of the step",
    "a router's biased scores are not finite in row {row} of the step",
    "id {detail} is outside the experts",
];

/// Words of shared memory beside those that depend on numbers of experts: of sums and maxima.
const WORDS: u64 = 1024 + 32;

pub(super) fn plan(params: &RouteParams, call: &PlanCall<'_>) -> Result<Plan, String> {
    let experts = call.ins[0].width;
    let words = WORDS + 2 * u64::from(experts) + u64::from(params.k) + u64::from(params.groups);
    if 4 * words > u64::from(call.device.shared_bytes) {
        return Err(format!("{} of {experts} experts: scores do not fit the device's shared memory", params.k));
    }
    // More experts than invocations take turns.
    let invocations = if experts > 128 { call.device.invocations.min(256) } else { 128 };
    let biased = !call.weights.is_empty();
    let dispatch = Dispatch {
        kernel: "route".into(),
        constants: vec![
            invocations,
            params.score as u32,
            experts,
            params.k,
            params.groups,
            params.groups_kept,
            u32::from(params.given_ids),
            u32::from(biased),
            u32::from(params.renormalise),
        ],
        args: vec![
            Arg::In(0),
            Arg::In(usize::from(params.given_ids)),
            Arg::Out(0),
            Arg::Out(1),
            if biased { Arg::Vector(0) } else { Arg::Null },
            Arg::Float(params.scale),
        ],
        grid: [Extent::ROWS, Extent::Fixed(1), Extent::Fixed(1)],
    };
    Ok(Plan { faults: FAULTS, ..Plan::one(dispatch) })
}
