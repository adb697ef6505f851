//! What is kept and drawn, against the numbers of `cases.json` and against the definition of a draw.

use coli_plugin_api::serde_json::{Value, from_str};

use super::{choose, kept};
use crate::contract::Sampling;
use crate::ops::sample::philox;

fn entries(prefix: &str) -> Vec<Value> {
    let all: Vec<Value> = from_str(include_str!("cases.json")).unwrap();
    let entries: Vec<Value> = all.into_iter().filter(|entry| entry["name"].as_str().unwrap().starts_with(prefix)).collect();
    assert!(!entries.is_empty(), "no case named {prefix}*");
    entries
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

/// The ids that the reference keeps and their probabilities.
#[test]
fn temperature_top_k_top_p_and_min_p_keep_what_the_reference_keeps() {
    for entry in entries("filters") {
        let logits: Vec<f32> = numbers(&entry["tensors"]["logits"]["data"]).iter().map(|logit| *logit as f32).collect();
        let expected = numbers(&entry["outputs"]["probs"]["data"]);
        let params = &entry["params"];
        let sampling = Sampling {
            temperature: params["temperature"].as_f64().unwrap() as f32,
            top_k: params["top_k"].as_u64().unwrap() as u32,
            top_p: params["top_p"].as_f64().unwrap() as f32,
            min_p: params["min_p"].as_f64().unwrap() as f32,
            seed: 0,
        };
        let kept = kept(&logits, &sampling).unwrap();
        let total: u64 = kept.iter().map(|(_, units)| units).sum();
        let mut probs = vec![0.0; logits.len()];
        kept.iter().for_each(|(id, units)| probs[*id] = *units as f64 / total as f64);
        for (id, (have, want)) in probs.iter().zip(&expected).enumerate() {
            assert!((have - want).abs() < 2e-6, "{}: id {id}: {have}, the reference says {want}", entry["name"]);
            // Below half a unit of 2^-31 an id is never drawn.
            assert!((*have > 0.0 || *want < 1e-9) && (*want > 0.0 || *have == 0.0), "{}: id {id} kept or not", entry["name"]);
        }
    }
}

#[test]
fn the_generator_gives_the_words_of_an_independent_one() {
    let words = |value: &Value| -> Vec<u32> { numbers(value).iter().map(|word| *word as u32).collect() };
    for entry in entries("philox") {
        for vector in entry["vectors"].as_array().unwrap() {
            let key: [u32; 2] = words(&vector["key"]).try_into().unwrap();
            let counter: [u32; 4] = words(&vector["counter"]).try_into().unwrap();
            assert_eq!(philox::words(key, counter).to_vec(), words(&vector["out"]));
        }
    }
}

/// 40,000 draws against the probabilities of three ids, with a bound of five standard deviations.
#[test]
fn draws_follow_the_probabilities() {
    let logits = [0.0f32, 1.0, f32::NEG_INFINITY, -1.0];
    let sampling = Sampling { temperature: 0.7, seed: 11, ..Sampling::GREEDY };
    let draws = 40_000u32;
    let mut counts = [0u32; 4];
    (0..draws).for_each(|position| counts[choose(&logits, &sampling, position).unwrap()] += 1);
    let weights = logits.map(|logit| (f64::from(logit) / 0.7).exp());
    let total: f64 = weights.iter().sum();
    for (count, weight) in counts.iter().zip(weights) {
        let share = weight / total;
        let bound = 5.0 * (share * (1.0 - share) * f64::from(draws)).sqrt();
        assert!((f64::from(*count) - share * f64::from(draws)).abs() <= bound, "{count} draws of a share of {share}");
    }
}

#[test]
fn a_seed_fixes_the_draws_and_another_seed_changes_them() {
    let logits: Vec<f32> = (0..64).map(|id| (id % 9) as f32 * 0.1).collect();
    let text = |seed| -> Vec<usize> {
        let sampling = Sampling { temperature: 1.0, seed, ..Sampling::GREEDY };
        (0..32).map(|position| choose(&logits, &sampling, position).unwrap()).collect()
    };
    assert_eq!(text(5), text(5));
    assert_ne!(text(5), text(6));
    assert_ne!(text(5), text(5 + (1 << 32)), "the upper half of the seed counts");
}

#[test]
fn greedy_takes_the_lowest_of_equals_and_refuses_what_is_no_number() {
    assert_eq!(choose(&[1.0, 3.0, 3.0], &Sampling::GREEDY, 0), Ok(1));
    assert_eq!(choose(&[f32::NEG_INFINITY, -2.0], &Sampling::GREEDY, 0), Ok(1));
    assert!(choose(&[1.0, f32::NAN], &Sampling::GREEDY, 0).is_err());
    assert!(choose(&[f32::NEG_INFINITY; 2], &Sampling::GREEDY, 0).is_err());
    assert!(choose(&[f32::INFINITY, 0.0], &Sampling { temperature: 1.0, ..Sampling::GREEDY }, 0).is_err());
}

/// Scores whose probabilities are powers of two of the best one's, rounded: the limit itself is kept.
#[test]
fn min_p_keeps_the_share_itself() {
    let logits = [0.0f32, -std::f32::consts::LN_2, -2.0 * std::f32::consts::LN_2, f32::NEG_INFINITY];
    let ids = |min_p| -> Vec<usize> {
        let sampling = Sampling { temperature: 1.0, min_p, ..Sampling::GREEDY };
        kept(&logits, &sampling).unwrap().iter().map(|(id, _)| *id).collect()
    };
    assert_eq!(ids(0.0), [0, 1, 2, 3]);
    assert_eq!(ids(0.2), [0, 1, 2]);
    assert_eq!(ids(0.4), [0, 1]);
    assert_eq!(ids(0.6), [0]);
    assert_eq!(ids(1.0), [0]);
}

#[test]
fn top_k_of_one_a_tiny_top_p_and_a_min_p_of_one_are_greedy() {
    let logits = [0.5f32, 0.9, 0.8, 0.1];
    let narrow = [
        Sampling { top_k: 1, ..Sampling::GREEDY },
        Sampling { top_p: 1e-6, ..Sampling::GREEDY },
        Sampling { min_p: 1.0, ..Sampling::GREEDY },
    ];
    for sampling in narrow {
        let sampling = Sampling { temperature: 1.0, ..sampling };
        assert!((0..50).all(|position| choose(&logits, &sampling, position) == Ok(1)));
    }
}
