//! Ops that a plugin brings: their kernels, bound to a plan's memory, and the trial of their device form before it is used.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use coli_base::Result;
use coli_shaders::contract::{Case, Data, RowClass};
use coli_shaders::device::{Bound, Plan};
use coli_vk::memory::Pool;
use coli_vk::{BoundKernel, BoundPipeline, Buffer, Device, Piece};

use super::device::VulkanDevice;
use crate::case::{self, OnDevice};
use crate::program::OpTable;

/// The kernels of one device.
#[derive(Default)]
pub(super) struct OwnKernels(Mutex<HashMap<Key, OwnKernel>>);

/// What a kernel was made from.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    spirv: Arc<[u8]>,
    constants: [u32; 3],
    counts: [usize; 3],
    params: Vec<u8>,
}

/// A compiled kernel with its parameters.
#[derive(Clone)]
pub(super) struct OwnKernel {
    pub pipeline: BoundPipeline,
    pub params: Buffer,
}

impl OwnKernels {
    /// The kernel of a plan, compiled the first time.
    pub fn get(&self, device: &Device, bound: &Bound) -> Result<OwnKernel> {
        let key = Key {
            spirv: bound.spirv.clone(),
            constants: bound.constants,
            counts: [bound.ins, bound.outs, bound.weights],
            params: bound.params.clone(),
        };
        // What is in the list is whole.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = known.get(&key) {
            return Ok(kernel.clone());
        }
        let (ins, outs) = (bound.ins as u32, bound.outs as u32);
        let pipeline = device.bound_pipeline(&BoundKernel {
            name: &bound.name,
            spirv: &bound.spirv,
            buffers: ins + outs + bound.weights as u32 + 2,
            written: ins..ins + outs,
            constants: &[(0, bound.constants[0]), (1, bound.constants[1]), (2, bound.constants[2])],
        })?;
        let [workgroup, subgroup, _] = bound.constants;
        if (pipeline.workgroup(), pipeline.subgroup()) != ([workgroup, 1, 1], subgroup) {
            let (is, size) = (pipeline.workgroup(), pipeline.subgroup());
            return Err(coli_base::Error::refused(format!(
                "kernel {}: its workgroup is {is:?} with subgroups of {size}, and constants 0 and 1 are {workgroup} and {subgroup}",
                bound.name
            )));
        }
        let params = device.buffer(Pool::Weights, bound.params.len() as u64)?;
        device.upload(&[Piece { to: &params, at: 0, from: &bound.params }])?;
        let kernel = OwnKernel { pipeline, params };
        known.insert(key, kernel.clone());
        Ok(kernel)
    }
}

/// The parts of a plan's scratch memory that its kernel reads, and those that it writes.
pub(super) fn parts(bound: &Bound) -> (Vec<usize>, Vec<usize>) {
    let outs = bound.ins + bound.outs;
    ((0..bound.ins).chain([outs]).collect(), (bound.ins..outs).collect())
}

/// The bytes of a part, of which its kernel must not see more.
pub(super) fn part_bytes(plan: &Plan, part: usize) -> u64 {
    plan.scratch.get(part).map_or(0, |scratch| scratch.words.saturating_mul(4))
}

/// Runs an op's cases on a device and compares with what the CPU gives, within the tolerance of the case, and the bits of whole steps with
/// those of single rows. What is wrong, in words: the device form must not be used then. A kernel that never ends loses the device.
pub fn try_form(cases: &[Case], ops: &OpTable, device: &Arc<VulkanDevice>, limit: Duration) -> std::result::Result<(), String> {
    let started = Instant::now();
    for case in cases {
        let fault = |why: String| format!("case `{}`: {why}", case.name.escape_debug());
        try_case(case, ops, device).map_err(fault)?;
        let spent = started.elapsed();
        if spent > limit {
            return Err(fault(format!("it took {:.1} s, and {:.1} s are given", spent.as_secs_f32(), limit.as_secs_f32())));
        }
    }
    Ok(())
}

fn try_case(case: &Case, ops: &OpTable, device: &Arc<VulkanDevice>) -> std::result::Result<(), String> {
    let len = case.rows.len();
    let (whole, alone) = (0..len, (0..len).map(|row| row..row + 1).collect::<Vec<_>>());
    let all = std::slice::from_ref(&whole);
    let cpu = case::run(case, ops, all).map_err(|error| error.text)?;
    let mut first: Option<HashMap<String, Data>> = None;
    for (class, cuts) in [(RowClass::Step, all), (RowClass::Prompt, all), (RowClass::Step, &alone)] {
        let on = OnDevice { device, fast: false, class, halves: false };
        let have = case::run_on(case, ops, cuts, &on).map_err(|error| error.text)?;
        for expected in &case.expected {
            let port = &expected.port;
            case::compare(&have[port], &cpu[port], expected.tolerance).map_err(|why| format!("port `{port}` {why}"))?;
        }
        match &first {
            None => first = Some(have),
            Some(first) => {
                if let Some((port, _)) = first.iter().find(|(port, data)| !case::same_bits(data, &have[*port])) {
                    return Err(format!("port `{port}` has other bits when its rows are computed with others"));
                }
            }
        }
    }
    Ok(())
}
