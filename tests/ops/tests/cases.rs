//! Every case of every op, through the whole path: record function, bytes, validation, linking, executor.
#![allow(clippy::unwrap_used)]

use coli_shaders::contract::{Case, Data};
use coli_test_common::cases::run;
use coli_test_common::compare::relative_error;

fn all() -> Vec<(String, Case)> {
    let ops = coli_shaders::ops::all();
    let cases = ops.iter().flat_map(|op| (op.cases)().into_iter().map(|case| (op.id.clone(), case)));
    cases.collect()
}

fn whole(case: &Case) -> Vec<std::ops::Range<usize>> {
    std::iter::once(0..case.rows.len()).collect()
}

fn row_by_row(case: &Case) -> Vec<std::ops::Range<usize>> {
    (0..case.rows.len()).map(|row| row..row + 1).collect()
}

#[test]
fn every_op_has_cases_that_use_it() {
    for op in coli_shaders::ops::all() {
        let cases = (op.cases)();
        assert!(!cases.is_empty(), "{} has no case", op.id);
        for case in cases {
            assert!(case.recording.ops.iter().any(|record| record.name == op.id), "{}: `{}` does not record it", op.id, case.name);
            assert!(!case.expected.is_empty(), "{}: `{}` expects nothing", op.id, case.name);
        }
    }
}

#[test]
fn every_case_gives_what_the_reference_gives() {
    for (op, case) in all() {
        let results = run(&case, &whole(&case)).unwrap_or_else(|fault| panic!("{op} `{}`: {fault}", case.name));
        for expected in &case.expected {
            match (&results[&expected.port], &expected.data) {
                (Data::F32(have), Data::F32(want)) => {
                    let error = relative_error(have, want);
                    let bound = expected.tolerance;
                    let (name, port, from) = (&case.name, &expected.port, &case.from);
                    assert!(error <= bound, "{op} `{name}` port {port}: off by {error:e}, bound {bound:e} ({from})");
                }
                (have, want) => assert_eq!(have, want, "{op} `{}` port {} ({})", case.name, expected.port, case.from),
            }
        }
    }
}

/// A row's bits do not depend on what it is computed with.
#[test]
fn every_case_gives_the_same_bits_row_by_row() {
    for (op, case) in all() {
        let (together, alone) = (run(&case, &whole(&case)).unwrap(), run(&case, &row_by_row(&case)).unwrap());
        for (port, data) in &together {
            match (data, &alone[port]) {
                (Data::F32(a), Data::F32(b)) => {
                    let bits = coli_test_common::compare::bits;
                    assert_eq!(bits(a), bits(b), "{op} `{}` port {port}", case.name);
                }
                (a, b) => assert_eq!(a, b, "{op} `{}` port {port}", case.name),
            }
        }
    }
}
