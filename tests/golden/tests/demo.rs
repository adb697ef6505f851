//! The demo model against 50 greedy continuations that transformers computed in float32.
#![allow(clippy::unwrap_used)]

use coli_test_common::{built, fixture};
use coli_test_golden::{greedy, open};

/// A step whose two best tokens are closer than this may go either way.
const MARGIN_MIN: f64 = 1e-3;

#[test]
fn the_demo_model_continues_as_the_reference_does() {
    let reference = fixture::json(&built::demo().join("reference.json"));
    let cases = reference["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 50);
    let mut engine = open(&built::demo());
    let (mut compared, mut ended) = (0, 0);
    for case in cases {
        let (prompt, want) = (fixture::ids(&case["prompt_ids"]), fixture::ids(&case["tokens"]));
        let have = greedy(&mut engine, &prompt, want.len());
        let margins = case["margins"].as_array().unwrap();
        let differs = (0..want.len()).find(|step| have[*step] != want[*step]);
        if let Some(step) = differs {
            let margin = margins[step].as_f64().unwrap();
            let (have, want) = (have[step], want[step]);
            assert!(margin < MARGIN_MIN, "{}: step {step}: {have} is not {want}, with a margin of {margin}", case["prompt"]);
            ended += 1;
        }
        compared += differs.unwrap_or(want.len());
    }
    println!("{compared} tokens equal, {ended} comparisons ended at a margin under {MARGIN_MIN}");
    assert!(compared > 3000, "only {compared} of 3200 tokens were compared");
}
