//! Tests of the case runner against cases that are wrong: each is an error, and none a panic.

use super::*;

fn good() -> Case {
    let norm = coli_shaders::ops::all().into_iter().find(|op| op.id == "norm@1").unwrap();
    (norm.cases)().swap_remove(0)
}

/// The error of the good case after a change.
fn fault(change: impl FnOnce(&mut Case)) -> String {
    let mut case = good();
    change(&mut case);
    check(&case, &OpTable::library()).unwrap_err().text
}

#[test]
fn a_good_case_passes() {
    check(&good(), &OpTable::library()).unwrap();
}

#[test]
fn a_number_that_is_off_is_named_with_its_port() {
    let off = |case: &mut Case| {
        let Data::F32(numbers) = &mut case.expected[0].data else { panic!("activations") };
        numbers[0] += 1.0;
    };
    assert!(fault(off).contains("port `y` is off by "));
    assert!(fault(|case| case.expected[0].tolerance = f32::NAN).contains("NaN is allowed"));
    assert_eq!(fault(|case| case.expected[0].data = Data::I32(vec![])), format!("port `y` gives other ids ({})", good().from));
}

#[test]
fn a_case_that_contradicts_itself_is_an_error() {
    assert!(fault(|case| case.rows.clear()).starts_with("0 rows"));
    assert!(fault(|case| case.rows[0].conv = u32::MAX).contains("conversation 4294967295"));
    assert!(fault(|case| case.rows[0].pos = u32::MAX).contains("position 4294967295"));
    assert!(fault(|case| case.tokens.clear()).contains("0 tokens"));
    assert!(fault(|case| case.tokens[0] = -1).contains("token"));
    assert!(fault(|case| case.expected.clear()).contains("expects nothing"));
    assert!(fault(|case| case.expected[0].port = "z".into()).contains("no port out `z`"));
    assert!(fault(|case| case.inputs[0].0 = "z".into()).contains("no port in `z`"));
    assert!(fault(|case| case.inputs[0].1 = Data::F32(vec![0.0])).contains("port in `x`: 1 F32"));
    assert!(fault(|case| case.inputs[0].1 = Data::I32(vec![])).contains("port in `x`: 0 I32"));
    assert!(fault(|case| case.inputs.push(case.inputs[0].clone())).contains("`x` is given twice"));
    assert!(!fault(|case| case.inputs.clear()).is_empty());
    assert!(!fault(|case| case.description.segments.clear()).is_empty());
    assert!(fault(|case| case.recording.ops[0].name = "a.b@1".into()).contains("this host has no such op"));
}

#[test]
fn errors_are_shares_of_the_largest_and_nan_never_passes() {
    assert_eq!(relative_error(&[1.0, 4.0], &[1.0, 5.0]), 0.2);
    assert_eq!(relative_error(&[0.5], &[0.0]), 0.5);
    assert_eq!(relative_error(&[f32::NAN, 1.0], &[0.0, 1.0]), f32::INFINITY);
    assert_eq!(relative_error(&[1.0], &[1.0, 2.0]), f32::INFINITY);
}
