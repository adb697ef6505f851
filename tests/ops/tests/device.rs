//! Every case of every op on a device, held to the reference and, bit for bit, to itself in other cuts. The driver is the environment's.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use coli_chain::case::{OnDevice, run_on};
use coli_chain::program::OpTable;
use coli_chain::vulkan::VulkanDevice;
use coli_kernels::Kernels;
use coli_shaders::contract::{Case, Data, RowClass};
use coli_test_common::compare::{bits, relative_error};
use coli_test_common::drivers::{self, Driver, newer_lavapipe, rerun, swiftshader, system_lavapipe, wants};

fn open() -> Arc<VulkanDevice> {
    let instance = coli_vk::Instance::open(&["libvulkan.so.1".into()]).unwrap();
    let devices = instance.devices().unwrap();
    // Small blocks that are not filled, since every case takes memory anew.
    let options = coli_vk::Options { limit: Some(512 << 20), fill: false, ..coli_vk::Options::default() };
    let device = coli_vk::Device::open(&instance, &devices[0], &options).unwrap();
    Arc::new(VulkanDevice::new(device, Arc::new(Kernels::embedded().unwrap())).unwrap())
}

fn all() -> Vec<(String, Case)> {
    let ops = coli_shaders::ops::all();
    let cases = ops.iter().flat_map(|op| (op.cases)().into_iter().map(|case| (op.id.clone(), case)));
    cases.filter(|(id, _)| wants(id)).collect()
}

fn same(a: &HashMap<String, Data>, b: &HashMap<String, Data>) -> bool {
    a.iter().all(|(port, data)| match (data, &b[port]) {
        (Data::F32(a), Data::F32(b)) => bits(a) == bits(b),
        (a, b) => a == b,
    })
}

fn check(case: &Case, device: &Arc<VulkanDevice>, fast: bool, class: RowClass, halves: bool) -> Result<(), String> {
    let on = OnDevice { device, fast, class, halves };
    let run = |cuts: &[Range<usize>]| run_on(case, &OpTable::library(), cuts, &on).map_err(|error| error.text);
    let whole = run(std::slice::from_ref(&(0..case.rows.len())))?;
    for expected in &case.expected {
        match (&whole[&expected.port], &expected.data) {
            (Data::F32(have), Data::F32(want)) => {
                let error = relative_error(have, want);
                let bound = expected.tolerance.max(if halves || fast { 2e-3 } else { 1e-5 });
                if error > bound || error.is_nan() {
                    let (have, want) = (&have[..have.len().min(8)], &want[..want.len().min(8)]);
                    return Err(format!("port {}: off by {error:e}, bound {bound:e}: {have:?} for {want:?}", expected.port));
                }
            }
            (have, want) if have == want => {}
            (have, want) => return Err(format!("port {}: {have:?} for {want:?}", expected.port)),
        }
    }
    let alone: Vec<Range<usize>> = (0..case.rows.len()).map(|row| row..row + 1).collect();
    if !same(&whole, &run(&alone)?) {
        return Err("other bits row by row".into());
    }
    Ok(())
}

/// What the tests below start with a driver's variables.
#[test]
#[ignore = "needs a driver"]
fn every_case_on_the_environments_device() {
    let device = open();
    // A buffer in every pool, so that its block stays from case to case.
    let _held: Vec<_> = coli_vk::memory::Pool::ALL.iter().map(|pool| device.device().buffer(*pool, 256).unwrap()).collect();
    let mut faults = vec![];
    let mut passed = 0;
    for (op, case) in all() {
        for (fast, class, halves) in modes() {
            match check(&case, &device, fast, class, halves) {
                Ok(()) => passed += 1,
                Err(fault) => faults.push(format!("{op} `{}` fast {fast} {class:?} halves {halves}: {fault}", case.name)),
            }
        }
    }
    println!("{passed} passed on {}", device.device().facts().name);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Mode, class and whether K and V are halves: all, or in the runs of every day those that differ most.
fn modes() -> Vec<(bool, RowClass, bool)> {
    let exact = [(false, RowClass::Step, false), (false, RowClass::Prompt, false)];
    let halves = [(true, RowClass::Step, true), (true, RowClass::Prompt, true)];
    let whole = [(true, RowClass::Step, false), (true, RowClass::Prompt, false)];
    let rest = if drivers::is_long() { &whole[..] } else { &[] };
    [&exact[..], &halves[..], rest].concat()
}

const CHILD: &[&str] = &["--ignored", "every_case_on_the_environments_device"];

#[test]
fn on_the_systems_lavapipe() {
    rerun(system_lavapipe(), "the system's Lavapipe", CHILD, 1);
}

#[test]
fn on_the_newer_lavapipe() {
    rerun(newer_lavapipe(), "the newer Lavapipe", CHILD, 1);
}

#[test]
#[ignore = "long: narrow and wide subgroups"]
fn on_the_systems_lavapipe_with_other_subgroups() {
    for width in ["128", "256", "512"] {
        let driver = system_lavapipe().map(|driver| driver.long().with("LP_NATIVE_VECTOR_WIDTH", width));
        rerun(driver, "the system's Lavapipe", CHILD, 1);
    }
}

#[test]
#[ignore = "long: a slow driver"]
fn on_swiftshader() {
    rerun(swiftshader().map(Driver::long), "SwiftShader", CHILD, 1);
}
