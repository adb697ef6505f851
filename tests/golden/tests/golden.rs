//! Every golden case: the reference's numbers, and the same bits however the work is cut.
#![allow(clippy::unwrap_used)]

use coli_test_common::compare::{bits, relative_error};
use coli_test_common::fixture;
use coli_test_golden::{Case, cases, greedy, hidden, logits, rows, step_logits};

/// Runs a check on every case and reports every failure.
fn for_every_case(check: impl Fn(&Case) -> Result<(), String>) {
    let faults: Vec<String> = cases().iter().filter_map(|case| check(case).err().map(|fault| format!("{}: {fault}", case.name))).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn logits_of_every_position_are_within_the_gate() {
    for_every_case(|case| {
        let want = &fixture::tensors(&case.folder.join("reference.st"))["logits"];
        let mut engine = case.open();
        let conv = engine.open_conversation();
        let have = logits(&mut engine, conv, &case.ids(), usize::MAX);
        assert_eq!(want.shape, [case.ids().len(), engine.facts().vocab as usize]);
        let error = relative_error(&have, &want.data);
        println!("{}: logits off by {error:e} of the largest, gate {:e}", case.name, case.gate.logits);
        if error <= case.gate.logits { Ok(()) } else { Err(format!("logits off by {error:e}, gate {:e}", case.gate.logits)) }
    });
}

#[test]
fn rows_between_segments_are_within_the_gate() {
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
        if compared > 0 { Ok(()) } else { Err("no hidden rows to compare".into()) }
    });
}

#[test]
fn the_greedy_continuation_is_exact() {
    for_every_case(|case| {
        let have = greedy(&mut case.open(), &case.prompt, case.greedy.len());
        if have == case.greedy { Ok(()) } else { Err(format!("{have:?}, the reference continues {:?}", case.greedy)) }
    });
}

#[test]
fn pieces_of_any_size_give_the_bits_of_one_block() {
    for_every_case(|case| {
        let mut engine = case.open();
        let mut run = |piece: usize| {
            let conv = engine.open_conversation();
            let logits = logits(&mut engine, conv, &case.ids(), piece);
            engine.close_conversation(conv);
            bits(&logits)
        };
        let whole = run(usize::MAX);
        match [1, 3, 7].into_iter().find(|piece| run(*piece) != whole) {
            None => Ok(()),
            Some(piece) => Err(format!("pieces of {piece} give other bits than one block")),
        }
    });
}

/// Two conversations with other tokens, in steps that hold rows of both in changing numbers and orders.
#[test]
fn interleaved_conversations_give_the_bits_of_each_alone() {
    for_every_case(|case| {
        let mut engine = case.open();
        let texts = [case.ids(), case.ids().into_iter().rev().collect::<Vec<u32>>()];
        let alone = texts.each_ref().map(|ids| {
            let conv = engine.open_conversation();
            let logits = logits(&mut engine, conv, ids, usize::MAX);
            engine.close_conversation(conv);
            logits
        });
        let convs = [engine.open_conversation(), engine.open_conversation()];
        let mut together = [vec![], vec![]];
        let mut mixed_steps = 0;
        for step in 0.. {
            let mut batch = vec![];
            // Either goes first, with 1 to 4 rows each.
            for which in if step % 2 == 0 { [0, 1] } else { [1, 0] } {
                let done = engine.len(convs[which]) as usize;
                let more = (step + 2 * which) % 4 + 1;
                batch.extend(rows(&engine, convs[which], &texts[which][done..(done + more).min(texts[which].len())]));
            }
            if batch.is_empty() {
                break;
            }
            let logits = step_logits(&mut engine, batch);
            mixed_steps += usize::from(logits.len() == 2);
            for which in 0..2 {
                together[which].extend(logits.get(&convs[which]).into_iter().flatten());
            }
        }
        assert!(mixed_steps > 3, "only {mixed_steps} steps held both conversations");
        match (0..2).find(|which| bits(&together[*which]) != bits(&alone[*which])) {
            None => Ok(()),
            Some(which) => Err(format!("conversation {which} has other bits beside the other one")),
        }
    });
}

/// Forgetting positions and appending others gives the bits of a conversation that never had them.
#[test]
fn a_rewound_conversation_gives_the_bits_of_a_fresh_one() {
    for_every_case(|case| {
        let mut engine = case.open();
        let ids = case.ids();
        let fresh = engine.open_conversation();
        let want = logits(&mut engine, fresh, &ids, usize::MAX);
        let conv = engine.open_conversation();
        logits(&mut engine, conv, &ids.iter().rev().copied().collect::<Vec<_>>(), 5);
        engine.rewind(conv, 0).unwrap();
        let (head, tail) = ids.split_at(ids.len() / 2);
        let mut have = logits(&mut engine, conv, head, usize::MAX);
        logits(&mut engine, conv, &[1, 2, 3], 1);
        engine.rewind(conv, head.len() as u32).unwrap();
        have.extend(logits(&mut engine, conv, tail, 2));
        if bits(&have) == bits(&want) { Ok(()) } else { Err("other bits after a rewind".into()) }
    });
}
