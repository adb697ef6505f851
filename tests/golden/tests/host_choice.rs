//! A token chosen on the host from the scores is the one that the recorded op chooses, and a penalty changes it.
#![allow(clippy::unwrap_used)]

use coli_app::engine::{Input, Repetition};
use coli_shaders::contract::Sampling;
use coli_test_common::{built, fixture};
use coli_test_golden::open;

const TOKENS: usize = 24;

#[test]
fn without_a_penalty_both_choose_the_same() {
    let mut engine = open(&built::demo());
    let prompt = fixture::ids(&fixture::json(&built::demo().join("reference.json"))["cases"][1]["prompt_ids"]);
    let drawn = Sampling { temperature: 0.9, top_k: 50, top_p: 0.9, min_p: 0.02, seed: 5 };
    for sampling in [Sampling::GREEDY, drawn, Sampling { seed: 6, ..drawn }] {
        let texts = [None, Some(1.0), Some(2.0)].map(|penalty| {
            let conv = engine.open_conversation();
            let mut repetition = Repetition::new(penalty.unwrap_or(1.0));
            let mut tokens: Vec<u32> = vec![];
            while tokens.len() < TOKENS {
                let input = tokens.last().map_or(Input::Prompt(&prompt), Input::Next);
                let next = match penalty {
                    None => engine.append(conv, input, sampling, || Ok(())),
                    Some(_) => engine.append_lowered(conv, input, sampling, &mut repetition, || Ok(())),
                };
                tokens.push(next.unwrap());
            }
            engine.close_conversation(conv);
            tokens
        });
        assert_eq!(texts[0], texts[1], "{sampling:?}");
        assert_ne!(texts[0], texts[2], "{sampling:?}");
    }
}
