//! Every case of every op in fast mode: near the reference, and with the same bits at every level, on any number of threads, and row by
//! row.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use coli_chain::case::How;
use coli_shaders::contract::{Case, Data, RowClass};
use coli_shaders::fast::Level;
use coli_test_common::cases::run_as;
use coli_test_common::compare::{bits, relative_error};

/// Cases are of f32, f16 and bf16 weights, so what may be off is another order of sums.
const BOUND: f32 = 1e-5;
/// Where rows of K and V are stored as binary16.
const HALF_BOUND: f32 = 2e-3;

fn all() -> Vec<(String, Case)> {
    let ops = coli_shaders::ops::all();
    ops.iter().flat_map(|op| (op.cases)().into_iter().map(|case| (op.id.clone(), case))).collect()
}

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_here())
}

#[test]
fn every_case_is_near_the_reference() {
    for (op, case) in all() {
        for (class, halves) in [(RowClass::Step, false), (RowClass::Prompt, false), (RowClass::Step, true), (RowClass::Prompt, true)] {
            let whole = std::iter::once(0..case.rows.len()).collect::<Vec<_>>();
            let how = How { fast: Some(Level::best()), class, threads: 2, halves };
            let results = run_as(&case, &whole, how).unwrap_or_else(|fault| panic!("{op} `{}` {how:?}: {fault}", case.name));
            for expected in &case.expected {
                match (&results[&expected.port], &expected.data) {
                    (Data::F32(have), Data::F32(want)) => {
                        let error = relative_error(have, want);
                        let bound = expected.tolerance.max(if halves { HALF_BOUND } else { BOUND });
                        assert!(error <= bound, "{op} `{}` port {} {how:?}: off by {error:e}", case.name, expected.port);
                    }
                    (have, want) => assert_eq!(have, want, "{op} `{}` port {} {how:?}", case.name, expected.port),
                }
            }
        }
    }
}

#[test]
fn bits_depend_on_the_row_class_alone() {
    for (op, case) in all() {
        let whole = std::iter::once(0..case.rows.len()).collect::<Vec<_>>();
        let rows: Vec<_> = (0..case.rows.len()).map(|row| row..row + 1).collect();
        for class in [RowClass::Step, RowClass::Prompt] {
            let twin = How { fast: Some(Level::Portable), class, threads: 1, halves: true };
            let want = run_as(&case, &whole, twin).unwrap();
            for level in levels() {
                for threads in [1, 3] {
                    for cuts in [&whole, &rows] {
                        let how = How { fast: Some(level), threads, ..twin };
                        let have = run_as(&case, cuts, how).unwrap();
                        assert!(same(&have, &want), "{op} `{}` {how:?} in {} steps has other bits", case.name, cuts.len());
                    }
                }
            }
        }
    }
}

fn same(a: &HashMap<String, Data>, b: &HashMap<String, Data>) -> bool {
    a.iter().all(|(port, data)| match (data, &b[port]) {
        (Data::F32(a), Data::F32(b)) => bits(a) == bits(b),
        (a, b) => a == b,
    })
}
