//! Every golden case against its reference.
#![allow(clippy::unwrap_used)]

use coli_test_common::compare::relative_error;
use coli_test_common::fixture;
use coli_test_golden::{append, for_every_case, greedy, hidden};

#[test]
fn logits_of_every_position_are_within_the_gate() {
    for_every_case(|case| {
        let want = &fixture::tensors(&case.folder.join("reference.st"))["logits"];
        let mut engine = case.open();
        let conv = engine.open_conversation();
        let have = append(&mut engine, conv, &case.ids(), usize::MAX).logits;
        assert_eq!(want.shape, [case.ids().len(), engine.facts().vocab as usize]);
        let error = relative_error(&have, &want.data);
        println!("{}: logits off by {error:e} of the largest, gate {:e}", case.name, case.gate.logits);
        if error <= case.gate.logits { Ok(()) } else { Err(format!("logits off by {error:e}, gate {:e}", case.gate.logits)) }
    });
}

/// Where the reference has a draft head's scores, which are those of all positions but the last, whose next token nobody knows.
#[test]
fn draft_logits_are_within_the_gate() {
    let mut compared = 0;
    for_every_case(|case| {
        let Some(want) = fixture::tensors(&case.folder.join("reference.st")).remove("mtp_logits") else { return Ok(()) };
        let mut engine = case.open();
        let conv = engine.open_conversation();
        let mut have = append(&mut engine, conv, &case.ids(), 7);
        have.truncate(want.shape[0], case.ids().len());
        compared += 1;
        let error = relative_error(&have.drafts, &want.data);
        println!("{}: draft logits off by {error:e} of the largest", case.name);
        if error <= case.gate.logits { Ok(()) } else { Err(format!("draft logits off by {error:e}, gate {:e}", case.gate.logits)) }
    });
    assert!(compared >= 4, "only {compared} draft heads were compared");
}

#[test]
fn rows_between_segments_are_within_the_gate() {
    let mut cases = 0;
    for_every_case(|case| {
        let reference = fixture::tensors(&case.folder.join("reference.st"));
        let hidden = hidden(&mut case.open(), &case.ids());
        let mut compared = 0;
        for (number, have) in hidden {
            let Some(want) = reference.get(&format!("hidden.{number}")) else { continue };
            // The last number stands after the final norm, which is not a row between segments.
            if !reference.contains_key(&format!("hidden.{}", number + 1)) {
                continue;
            }
            let error = relative_error(&have, &want.data);
            if error > case.gate.logits {
                return Err(format!("hidden.{number} off by {error:e}"));
            }
            compared += 1;
        }
        cases += usize::from(compared > 0);
        let has_some = reference.keys().any(|name| name.starts_with("hidden."));
        if has_some && compared == 0 { Err("no hidden rows were compared".into()) } else { Ok(()) }
    });
    assert!(cases >= 5, "only {cases} cases have rows between segments");
}

#[test]
fn the_greedy_continuation_is_exact() {
    for_every_case(|case| {
        let have = greedy(&mut case.open(), &case.prompt, case.greedy.len());
        if have == case.greedy { Ok(()) } else { Err(format!("{have:?}, the reference continues {:?}", case.greedy)) }
    });
}

/// The same on Vulkan devices: this program again, with a driver's variables.
mod on_devices {
    use coli_test_common::drivers::{newer_lavapipe, rerun, swiftshader, system_lavapipe};

    const TESTS: usize = 4;

    #[test]
    fn on_the_systems_lavapipe() {
        rerun(system_lavapipe(), "the system's Lavapipe", &["--skip", "on_devices::"], TESTS);
    }

    #[test]
    fn on_the_newer_lavapipe() {
        rerun(newer_lavapipe(), "the newer Lavapipe", &["--skip", "on_devices::"], TESTS);
    }

    #[test]
    #[ignore = "long: narrow and wide subgroups"]
    fn on_the_systems_lavapipe_with_other_subgroups() {
        for width in ["128", "512"] {
            let driver = system_lavapipe().map(|driver| driver.with("LP_NATIVE_VECTOR_WIDTH", width));
            rerun(driver, "the system's Lavapipe", &["--skip", "on_devices::"], TESTS);
        }
    }

    #[test]
    #[ignore = "long: a slow driver"]
    fn on_swiftshader() {
        rerun(swiftshader(), "SwiftShader", &["--skip", "on_devices::"], TESTS);
    }
}
