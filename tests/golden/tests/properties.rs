//! Every golden case gives the same bits however its work is cut: into pieces, among conversations, by drafts that are rejected, layer by
//! layer, between executors, at a snapshot.
#![allow(clippy::unwrap_used)]

use coli_app::engine::Engine;
use coli_chain::{ConvId, Row};
use coli_test_golden::{Case, Outputs, append, for_every_case, next_rows, step, try_step};

/// The outputs of all tokens in one step.
fn whole(case: &Case) -> Outputs {
    let outputs = fresh(&mut case.open(), &case.ids(), usize::MAX);
    assert!(outputs.logits.iter().chain(&outputs.drafts).all(|number| number.is_finite()));
    outputs
}

/// The outputs of a new conversation in pieces.
fn fresh(engine: &mut Engine, ids: &[u32], piece: usize) -> Outputs {
    let conv = engine.open_conversation();
    let outputs = append(engine, conv, ids, piece);
    engine.close_conversation(conv);
    outputs
}

fn same(have: &Outputs, want: &Outputs, what: impl std::fmt::Display) -> Result<(), String> {
    if have.bits() == want.bits() { Ok(()) } else { Err(format!("{what}: other bits")) }
}

#[test]
fn pieces_of_any_size() {
    for_every_case(|case| {
        let want = whole(case);
        let mut engine = case.open();
        (1..=13).try_for_each(|piece| same(&fresh(&mut engine, &case.ids(), piece), &want, format!("pieces of {piece}")))
    });
}

/// Conversations with other tokens, in steps that hold rows of all in changing numbers and orders.
#[test]
fn two_and_three_conversations_in_one_step() {
    for_every_case(|case| {
        for count in [2, 3] {
            let mut engine = case.open();
            let texts: Vec<Vec<u32>> = (0..count).map(|which| other_text(case, which)).collect();
            let alone: Vec<Outputs> = texts.iter().map(|ids| fresh(&mut engine, ids, usize::MAX)).collect();
            let convs: Vec<ConvId> = texts.iter().map(|_| engine.open_conversation()).collect();
            let mut together = vec![Outputs::default(); count];
            let mut full_steps = 0;
            for number in 0.. {
                let order = (0..count).map(|place| (place + number) % count);
                let batch = order.flat_map(|which| next_rows(&engine, convs[which], &texts[which], (number + 2 * which) % 4 + 1));
                let batch: Vec<Row> = batch.collect();
                if batch.is_empty() {
                    break;
                }
                let mut outputs = step(&mut engine, batch);
                full_steps += usize::from(outputs.len() == count);
                for (conv, together) in convs.iter().zip(&mut together) {
                    together.extend(outputs.remove(conv).unwrap_or_default());
                }
            }
            assert!(full_steps > 3, "only {full_steps} steps held all conversations");
            for which in 0..count {
                same(&together[which], &alone[which], format!("conversation {which} beside {} others", count - 1))?;
            }
        }
        Ok(())
    });
}

/// The case's tokens, backwards, or each moved to the next one's place.
fn other_text(case: &Case, which: usize) -> Vec<u32> {
    let mut ids = case.ids();
    match which {
        0 => {}
        1 => ids.reverse(),
        _ => ids.rotate_left(1),
    }
    ids
}

/// A verify: rows that stay, then 0 to 4 drafts that do not, which are taken back before the next one. Row states are cut off, accumulators
/// go back to the row that was marked.
#[test]
fn drafts_that_are_rejected() {
    for_every_case(|case| {
        let want = whole(case);
        for seed in 0..4usize {
            let mut engine = case.open();
            let ids = case.ids();
            let conv = engine.open_conversation();
            let mut have = Outputs::default();
            let mut rejected = 0;
            for number in seed.. {
                let (good, bad) = (number % 3 + 1, (number * 3 + seed) % 5);
                let mut rows = next_rows(&engine, conv, &ids, good);
                if rows.is_empty() {
                    break;
                }
                let (good, end) = (rows.len(), engine.len(conv) as usize + rows.len());
                let draft = |index: usize| Row {
                    next: Some(1),
                    ..Row::text(conv, (end + index) as u32, (7 * number + index) as u32 % 200, rows[0].out)
                };
                let drafts: Vec<Row> = (0..bad).map(draft).collect();
                rows.extend(drafts);
                rows.iter_mut().for_each(|row| row.rewindable = true);
                let all = rows.len();
                let mut outputs = step(&mut engine, rows).remove(&conv).unwrap();
                outputs.truncate(good, all);
                have.extend(outputs);
                engine.rewind(conv, end as u32).map_err(|error| error.text)?;
                rejected += bad;
            }
            assert!(rejected > 10, "only {rejected} drafts were rejected");
            same(&have, &want, format!("seed {seed}"))?;
        }
        Ok(())
    });
}

/// Each layer over three chunks before the next layer, as a prompt that is longer than memory for its rows would run.
#[test]
fn layer_by_layer_over_chunks() {
    for_every_case(|case| {
        let want = whole(case);
        let mut engine = case.open();
        let ids = case.ids();
        for tile in [ids.len().div_ceil(3), 7, 1] {
            engine.relay().set_tile(tile);
            same(&fresh(&mut engine, &ids, usize::MAX), &want, format!("chunks of {tile}"))?;
        }
        // A device cuts by itself what is too much for one submit.
        engine.relay().set_tile(usize::MAX);
        engine.relay().set_work(2 * ids.len() as u64);
        let before: u64 = engine.relay().on_device().flatten().map(|stage| stage.submits()).sum();
        same(&fresh(&mut engine, &ids, usize::MAX), &want, "little work a submit")?;
        let submits = engine.relay().on_device().flatten().map(|stage| stage.submits()).sum::<u64>() - before;
        let on_device = engine.relay().on_device().flatten().count() > 0;
        if on_device && submits < 3 * ids.len() as u64 / 2 { Err(format!("only {submits} submits")) } else { Ok(()) }
    });
}

/// Steps of uneven sizes.
fn uneven(engine: &mut Engine, ids: &[u32]) -> coli_base::Result<Outputs> {
    let conv = engine.open_conversation();
    let mut all = Outputs::default();
    for piece in [7, 5, 1, 1, 9].into_iter().chain(std::iter::repeat(usize::MAX)) {
        let rows = next_rows(engine, conv, ids, piece);
        if rows.is_empty() {
            break;
        }
        all.extend(try_step(engine, rows)?.remove(&conv).unwrap());
    }
    Ok(all)
}

/// A model cut before segment N, in two stages that share nothing but what crosses; everything else is NaN at the start of each step.
#[test]
fn every_cut() {
    for_every_case(|case| {
        let want = whole(case);
        let segments = segments(case);
        for cut in 1..segments {
            let mut engine = case.open_cut(&[cut]);
            engine.relay().poison_scratch();
            same(&uneven(&mut engine, &case.ids()).unwrap(), &want, format!("a cut before segment {cut}"))?;
        }
        let mut engine = case.open_cut(&(1..segments).collect::<Vec<_>>());
        engine.relay().poison_scratch();
        same(&uneven(&mut engine, &case.ids()).unwrap(), &want, "a stage for each segment")
    });
}

fn segments(case: &Case) -> usize {
    case.open().relay().segments()
}

/// Each thing that crosses is needed: a run without it fails or gives other bits.
#[test]
fn nothing_crosses_in_vain() {
    let (mut ports, mut states) = (0, 0);
    for_every_case(|case| {
        let want = whole(case);
        for cut in 1..segments(case) {
            let full = case.open_cut(&[cut]).relay().crossings().nth(1).unwrap().clone();
            assert!(!full.ports.is_empty(), "nothing crosses a cut before segment {cut}");
            for withheld in 0..full.ports.len() + full.states.len() {
                let mut engine = case.open_cut(&[cut]);
                engine.relay().poison_scratch();
                let crossing = engine.relay().crossing_mut(1);
                if withheld < full.ports.len() {
                    crossing.ports.remove(withheld);
                    ports += 1;
                } else {
                    crossing.states.remove(withheld - full.ports.len());
                    states += 1;
                }
                if uneven(&mut engine, &case.ids()).is_ok_and(|outputs| outputs.bits() == want.bits()) {
                    return Err(format!("a cut before segment {cut} does not need {withheld} of {full:?}"));
                }
            }
        }
        Ok(())
    });
    println!("{ports} ports and {states} states were withheld");
    assert!(ports > 30 && states >= 3, "{ports} ports and {states} states were withheld");
}

#[test]
fn a_snapshot_is_continued_as_often_as_one_likes() {
    for_every_case(|case| {
        let want = whole(case);
        let mut engine = case.open();
        let ids = case.ids();
        for len in [1, 11, 27] {
            let conv = engine.open_conversation();
            let head = append(&mut engine, conv, &ids[..len + 1], len);
            engine.close_conversation(conv);
            let conv = engine.open_conversation();
            let rows = next_rows(&engine, conv, &ids, len);
            let head_again = step(&mut engine, rows).remove(&conv).unwrap();
            let snapshot = engine.relay().snapshot(conv).map_err(|error| error.text)?;
            drop(head);
            // What goes on beside it, and what became of the conversation itself, leaves no trace.
            append(&mut engine, conv, &[&ids[..len], &[3, 3, 3]].concat(), 2);
            engine.close_conversation(conv);
            for _ in 0..2 {
                let restored = engine.relay().restore(&snapshot);
                let mut have = head_again.clone();
                have.extend(append(&mut engine, restored, &ids, 3));
                same(&have, &want, format!("a snapshot after {len}"))?;
            }
        }
        Ok(())
    });
}

/// Forgetting all positions and appending others gives the bits of a conversation that never had them.
#[test]
fn a_conversation_begun_again() {
    for_every_case(|case| {
        let want = whole(case);
        let mut engine = case.open();
        let conv = engine.open_conversation();
        append(&mut engine, conv, &other_text(case, 1), 5);
        engine.rewind(conv, 0).map_err(|error| error.text)?;
        same(&append(&mut engine, conv, &case.ids(), 4), &want, "after a rewind to the start")
    });
}

/// The same on Vulkan devices: this program again, with a driver's variables.
mod on_devices {
    use coli_test_common::drivers::{Driver, newer_lavapipe, rerun, swiftshader, system_lavapipe};

    const TESTS: usize = 8;
    /// What shows most of a device: cuts between executors, drafts that are taken back, tiles of rows.
    const SHORT: &[&str] = &["drafts_that", "layer_by_layer", "every_cut", "--skip", "on_devices::"];

    #[test]
    fn on_the_systems_lavapipe() {
        // What a frame does is the same in all of these; `golden` runs it under the validation layer.
        rerun(system_lavapipe().map(Driver::unvalidated), "the system's Lavapipe", SHORT, 3);
    }

    #[test]
    #[ignore = "long: all of them"]
    fn all_on_the_systems_lavapipe() {
        rerun(system_lavapipe().map(Driver::unvalidated), "the system's Lavapipe", &["--skip", "on_devices::"], TESTS);
    }

    #[test]
    #[ignore = "long: a second Lavapipe"]
    fn on_the_newer_lavapipe() {
        rerun(newer_lavapipe().map(Driver::unvalidated), "the newer Lavapipe", &["--skip", "on_devices::"], TESTS);
    }

    #[test]
    #[ignore = "long: a slow driver"]
    fn on_swiftshader() {
        rerun(swiftshader().map(Driver::unvalidated), "SwiftShader", &["--skip", "on_devices::"], TESTS);
    }
}
