//! Plans of ops that a plugin brings: operands are copied to memory without gaps, the plugin's kernel runs bound to it, and its outputs are
//! copied back. The plugin's kernel sees no address and no step.

use std::sync::Arc;

use coli_plugin_api::own_op::{OwnDevice, OwnExtent};

use super::glsl::{KernelText, Per};
use super::plan::{Arg, Dispatch, Extent, Plan, PlanCall, Scratch};

/// Invocations of a workgroup of the copies.
const GROUP: u32 = 64;
/// Invocations of a workgroup of a plugin's kernel at most: what every device has.
const WORKGROUP_MAX: u32 = 128;
/// Rows that a grid is checked for, so that a use has a device form for steps of any size or for none.
const ROWS_LEAST: u32 = 16_384;
/// Words of the head of the rows, and of each row.
const ROWS_WORDS: u64 = 4;

/// The copies' kernels.
pub(super) const KERNELS: &[KernelText] = &[
    KernelText { name: "own_copy", text: include_str!("own_copy.comp"), per: Per::One },
    KernelText { name: "own_rows", text: include_str!("own_rows.comp"), per: Per::One },
];

/// A kernel of a plugin's own, bound to a plan's memory in this order: the scratch parts of operands and of outputs, the weights as f32,
/// the scratch part of the rows, and the parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// The op, for messages.
    pub name: String,
    /// The kernel, as little-endian words.
    pub spirv: Arc<[u8]>,
    /// Specialization constants 0 to 2: invocations of a workgroup, the subgroup's size, the row cap.
    pub constants: [u32; 3],
    /// Operands: scratch parts from 0 on.
    pub ins: usize,
    /// Outputs: scratch parts after them, which alone it writes. The part after those has the rows.
    pub outs: usize,
    /// Weights.
    pub weights: usize,
    /// The parameters' bytes, whole words.
    pub params: Vec<u8>,
    /// Workgroups.
    pub groups: [u32; 3],
    /// How many of the plan's dispatches come before it.
    pub after: usize,
}

/// The plan of an op of a plugin's own, for its kernel and the bytes of its parameters.
pub fn own_plan(name: &str, device: &OwnDevice, params: &[u8], call: &PlanCall<'_>) -> Result<Plan, String> {
    if !call.states.is_empty() || !call.groups.is_empty() {
        return Err("has a state or experts, and the device form of a plugin's op has neither".into());
    }
    let workgroup = device.form.workgroup;
    if workgroup == 0 || workgroup > WORKGROUP_MAX {
        return Err(format!("asks for workgroups of {workgroup} invocations, expected 1 to {WORKGROUP_MAX}"));
    }
    let cap = call.cap;
    let grid = |cap: u32| {
        let [x, y, z] = device.form.grid.map(|extent| groups(extent, cap));
        Ok::<_, String>([x?, y?, z?])
    };
    let (most, largest) = ([call.device.groups_x, 65_535, 65_535], grid(cap.max(ROWS_LEAST))?);
    if largest.iter().zip(most).any(|(groups, most)| *groups > most) {
        return Err(format!("asks for a grid of {largest:?} workgroups for many rows, the device takes {most:?}"));
    }
    let mut plan = Plan::default();
    for (index, operand) in call.ins.iter().enumerate() {
        plan.dispatches.push(copy(Arg::In(index), plan.scratch.len(), operand.width, true));
        plan.scratch.push(dense(cap, operand.width));
    }
    plan.scratch.extend(call.outs.iter().map(|out| dense(cap, out.width)));
    plan.dispatches.push(Dispatch {
        kernel: "own_rows".into(),
        constants: vec![GROUP],
        args: vec![Arg::Scratch(plan.scratch.len())],
        grid: [Extent::Rows { per: GROUP, times: 1 }, Extent::Fixed(1), Extent::Fixed(1)],
    });
    plan.scratch.push(Scratch { words: ROWS_WORDS * (1 + u64::from(cap)) });
    let after = plan.dispatches.len();
    for (index, out) in call.outs.iter().enumerate() {
        plan.dispatches.push(copy(Arg::Out(index), call.ins.len() + index, out.width, false));
    }
    let mut bytes = params.to_vec();
    bytes.resize(params.len().next_multiple_of(4).max(4), 0);
    plan.bound = Some(Arc::new(Bound {
        name: name.into(),
        spirv: device.spirv.as_slice().into(),
        constants: [workgroup, call.device.subgroup, cap],
        ins: call.ins.len(),
        outs: call.outs.len(),
        weights: call.weights.len(),
        params: bytes,
        groups: grid(cap)?,
        after,
    }));
    Ok(plan)
}

fn groups(extent: OwnExtent, cap: u32) -> Result<u32, String> {
    let groups = match extent {
        OwnExtent::Fixed(groups) => Some(groups),
        OwnExtent::Rows { per: 0, .. } => None,
        OwnExtent::Rows { per, times } => cap.div_ceil(per).checked_mul(times),
    };
    groups.filter(|groups| *groups > 0).ok_or_else(|| format!("asks for a grid of {extent:?}"))
}

fn dense(cap: u32, width: u32) -> Scratch {
    Scratch { words: u64::from(cap) * u64::from(width) }
}

fn copy(operand: Arg, scratch: usize, width: u32, there: bool) -> Dispatch {
    Dispatch {
        kernel: "own_copy".into(),
        constants: vec![GROUP, width, there.into()],
        args: vec![operand, Arg::Scratch(scratch)],
        grid: [Extent::of(width, GROUP), Extent::ROWS, Extent::Fixed(1)],
    }
}

#[cfg(test)]
mod tests {
    use coli_plugin_api::own_op::OwnForm;
    use coli_plugin_api::program::GroupId;

    use super::super::plan::{DeviceShape, ExpertShape, Operand, PlanFacts, StateForm};
    use super::*;
    use crate::contract::RowClass;

    struct NoExperts;

    impl PlanFacts for NoExperts {
        fn experts(&self, _: GroupId, _: u32) -> Option<ExpertShape> {
            None
        }
    }

    fn planned(workgroup: u32, grid: [OwnExtent; 3], states: &[StateForm]) -> Result<Plan, String> {
        let device = DeviceShape { subgroup: 8, invocations: 256, shared_bytes: 16 << 10, matrix: None, groups_x: 100_000 };
        let own = OwnDevice { spirv: vec![1, 2, 3, 4], form: OwnForm { workgroup, grid } };
        let widths = [Operand { width: 5 }, Operand { width: 100 }];
        own_plan(
            "a.b@1",
            &own,
            &[7; 5],
            &PlanCall {
                class: RowClass::Step,
                cap: 16,
                context: 100,
                fast: false,
                device: &device,
                ins: &widths,
                outs: &widths[..1],
                weights: &[],
                states,
                groups: &[],
                facts: &NoExperts,
            },
        )
    }

    const ONE: OwnExtent = OwnExtent::Fixed(1);

    #[test]
    fn a_kernel_is_bound_to_memory_without_gaps() {
        let plan = planned(64, [OwnExtent::Rows { per: 3, times: 2 }, ONE, ONE], &[]).unwrap();
        let bound = plan.bound.unwrap();
        assert_eq!((bound.ins, bound.outs, bound.after, bound.groups), (2, 1, 3, [12, 1, 1]));
        assert_eq!((bound.constants, bound.params.as_slice()), ([64, 8, 16], &[7, 7, 7, 7, 7, 0, 0, 0][..]));
        let words: Vec<u64> = plan.scratch.iter().map(|scratch| scratch.words).collect();
        assert_eq!(words, [80, 1600, 80, 68]);
        let args: Vec<&[Arg]> = plan.dispatches.iter().map(|dispatch| dispatch.args.as_slice()).collect();
        let copies = [[Arg::In(0), Arg::Scratch(0)], [Arg::In(1), Arg::Scratch(1)], [Arg::Out(0), Arg::Scratch(2)]];
        assert_eq!(args, [&copies[0][..], &copies[1], &[Arg::Scratch(3)], &copies[2]]);
        assert_eq!(plan.dispatches[1].grid, [Extent::Fixed(2), Extent::ROWS, Extent::Fixed(1)]);
    }

    #[test]
    fn forms_that_no_device_runs_are_refused() {
        let fault = |workgroup, x| planned(workgroup, [x, ONE, ONE], &[]).unwrap_err();
        for workgroup in [0, 129, u32::MAX] {
            assert!(fault(workgroup, ONE).contains("expected 1 to 128"));
        }
        for extent in [OwnExtent::Fixed(0), OwnExtent::Fixed(100_001)] {
            assert!(fault(64, extent).contains("a grid of"), "{extent:?}");
        }
        for (per, times) in [(0, 1), (1, 0), (1, u32::MAX), (1, 100)] {
            assert!(fault(64, OwnExtent::Rows { per, times }).contains("a grid of"), "{per} {times}");
        }
        assert!(planned(64, [ONE, ONE, OwnExtent::Fixed(65_536)], &[]).unwrap_err().contains("a grid of"));
        let state = StateForm { stride: 1, width: 4, page_rows: 64, half: false };
        assert!(planned(64, [ONE; 3], &[state]).unwrap_err().contains("has a state"));
    }
}
