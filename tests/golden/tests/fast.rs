//! Fast mode on every golden model: near exact mode, and with bits that depend on the row class and the row's history alone.
#![allow(clippy::unwrap_used)]

use coli_app::engine::Engine;
use coli_chain::{ConvId, Step};
use coli_shaders::contract::RowClass;
use coli_test_common::compare::{bits, relative_error};
use coli_test_golden::{Case, for_every_case, logits, next_rows, open, open_fast, try_run};

/// How far the logits of most positions may be from exact mode's, as a share of the largest: K and V are stored as binary16 (2^-11). At
/// some positions a router, or a choice of keys, takes another one of two that are near.
const NEAR: f32 = 2e-3;

/// The logits of all ids, in steps of so many rows.
fn run(engine: &mut Engine, ids: &[u32], class: RowClass, rows: usize) -> Vec<f32> {
    let conv = engine.open_conversation();
    let mut all = vec![];
    while (engine.len(conv) as usize) < ids.len() {
        all.extend(one(engine, conv, ids, class, rows));
    }
    engine.close_conversation(conv);
    all
}

fn one(engine: &mut Engine, conv: ConvId, ids: &[u32], class: RowClass, rows: usize) -> Vec<f32> {
    let rows = next_rows(engine, conv, ids, rows);
    try_run(engine, &Step { rows, class }).unwrap().remove(&conv).unwrap().logits
}

fn same(name: &str, a: &[f32], b: &[f32]) -> Result<(), String> {
    if bits(a) == bits(b) { Ok(()) } else { Err(format!("{name} has other bits")) }
}

#[test]
fn fast_mode_is_near_exact_mode() {
    for_every_case(|case: &Case| {
        let ids = case.ids();
        let mut engine = open(&case.model);
        let conv = engine.open_conversation();
        let want = logits(&mut engine, conv, &ids, usize::MAX);
        let mut engine = open_fast(&case.model, 2);
        assert!(engine.facts().fast.is_some());
        for class in [RowClass::Prompt, RowClass::Step] {
            let have = run(&mut engine, &ids, class, usize::MAX);
            if bits(&have) == bits(&want) {
                return Err("its bits are those of exact mode: it did not run".into());
            }
            let vocab = want.len() / ids.len();
            let rows = have.chunks_exact(vocab).zip(want.chunks_exact(vocab));
            let mut errors: Vec<f32> = rows.map(|(have, want)| relative_error(have, want)).collect();
            errors.sort_unstable_by(f32::total_cmp);
            let error = errors[errors.len() / 2];
            println!(
                "{} {class:?}: half of the positions off by {error:e} of the largest, all by {:e}",
                case.name,
                errors[errors.len() - 1]
            );
            if error > NEAR {
                return Err(format!("{class:?}: off by {error:e}"));
            }
        }
        Ok(())
    });
}

#[test]
fn bits_do_not_depend_on_cuts_or_threads() {
    for_every_case(|case| {
        let ids = case.ids();
        let mut engine = open_fast(&case.model, 1);
        for class in [RowClass::Prompt, RowClass::Step] {
            let want = run(&mut engine, &ids, class, usize::MAX);
            for rows in [1, 5] {
                same(&format!("{class:?} in steps of {rows}"), &run(&mut engine, &ids, class, rows), &want)?;
            }
            same(&format!("{class:?} on 3 threads"), &run(&mut open_fast(&case.model, 3), &ids, class, usize::MAX), &want)?;
        }
        Ok(())
    });
}

#[test]
fn conversations_do_not_see_each_other() {
    for_every_case(|case| {
        let ids = case.ids();
        let mut engine = open_fast(&case.model, 2);
        for class in [RowClass::Prompt, RowClass::Step] {
            let want = run(&mut engine, &ids, class, usize::MAX);
            let (a, b) = (engine.open_conversation(), engine.open_conversation());
            one(&mut engine, b, &ids, class, 3);
            let mut rows = next_rows(&engine, a, &ids, usize::MAX);
            rows.extend(next_rows(&engine, b, &ids, 4));
            let both = try_run(&mut engine, &Step { rows, class }).unwrap();
            let vocab = want.len() / ids.len();
            same(&format!("{class:?} beside another"), &both[&a].logits, &want)?;
            same(&format!("{class:?} behind another"), &both[&b].logits, &want[3 * vocab..7 * vocab])?;
        }
        Ok(())
    });
}
